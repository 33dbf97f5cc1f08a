//! `decide`: a person's word on a lost attempt.

use engine::ids::NodeId;
use engine::payload::Payload;
use engine::scheduler::event::Answer;

use super::Context;
use crate::args::{DecideArgs, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::files;
use crate::follow::{Following, OnInterrupt, Target, follow};
use crate::output::Form;
use crate::signals::Interrupts;

/// See [`DecideArgs`].
pub async fn decide(context: &Context, args: DecideArgs) -> Result<Exit, CommandError> {
    let form = Form::chosen(&args.json, context.color);
    let answer = answer(&args)?;
    let following =
        Following { form, on_interrupt: OnInterrupt::Cancel, program: &context.program };
    let app = context.open().await?;
    let mut interrupts = Interrupts::listen();
    let execution = args.execution;
    let exit = async {
        let told = app.execution(execution)?.0.seq;
        app.decide(execution, NodeId::from(args.node.as_str()), answer).await?;
        let targets = [Target { execution, told }];
        follow(&app, &targets, following, &mut interrupts).await
    };
    let exit = exit.await;
    app.close().await;
    exit
}

fn answer(args: &DecideArgs) -> Result<Answer, CommandError> {
    let needless = |what: &str, decision: &str| {
        Err(CommandError::invalid(format!("{what} says nothing about {decision}; leave it out")))
    };
    match (args.decision, &args.output, &args.message) {
        (Decision::Retry, None, None) => Ok(Answer::Retry),
        (Decision::Retry, Some(_), _) => needless("--output", "a retry"),
        (Decision::Retry, _, Some(_)) => needless("--message", "a retry"),
        (Decision::Fail, None, message) => {
            let message = message.as_deref().unwrap_or("a person decided that it failed");
            Ok(Answer::Fail { message: message.to_owned() })
        }
        (Decision::Fail, Some(_), _) => needless("--output", "a failure"),
        (Decision::Complete, Some(output), None) => {
            Ok(Answer::Complete(Payload::new(files::value(output)?)))
        }
        (Decision::Complete, _, Some(_)) => needless("--message", "a completion"),
        (Decision::Complete, None, _) => {
            Err(CommandError::invalid("to complete a node, give its output with --output"))
        }
    }
}
