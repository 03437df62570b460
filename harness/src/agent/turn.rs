//! One model turn: asked with the conversation as stored, stored as a whole or not at all.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::mpsc;
use uuid::Uuid;

use super::conversation::{calls_of, messages};
use super::prompt::system;
use super::stream::store_events;
use super::work::{Cut, View, Work};
use crate::model::{CallFault, ModelError, Turn, TurnEnd};
use crate::session::{Counts, Event, Item, RunState, ToolCall, Usage};
use crate::store::StoreError;
use crate::tools;

/// The pause after the first failed turn; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Work<'_> {
    /// Asks the model and stores what it says.
    pub(super) async fn turn(&self) -> Result<(), Cut> {
        let view = self.begin_turn().await?;
        let text = system(&view.session, &self.environment);
        let conversation = match messages(&text, &view.items, self.parts.settings.context_bytes) {
            Ok(conversation) => conversation,
            Err(error) => {
                let end =
                    RunState::Failed { code: "context_too_long".to_owned(), message: error.to_string() };
                return self.end(&end, "the conversation is too long").await;
            }
        };
        let Some(model) = &self.parts.model else {
            let message = "no model is configured".to_owned();
            let end = RunState::Failed { code: "model_misconfigured".to_owned(), message };
            return self.end(&end, "there is no model").await;
        };
        let catalogue = tools::catalogue(view.session.profile);
        let (deltas, pieces) = mpsc::channel(256);
        let asked = async {
            let turn = model.turn(view.session.model.as_deref(), &conversation, &catalogue, &deltas).await;
            drop(deltas);
            turn
        };
        let run = self.run.to_string();
        let stored = store_events(
            &self.parts.store,
            self.lease,
            pieces,
            |text| ((), text),
            |(), text| Event::MessageDelta { run: run.clone(), text },
        );
        let (turn, stored) = self.until_cut(&view, async { tokio::join!(asked, stored) }).await?;
        stored?;
        match turn {
            Ok(turn) => self.store_turn(&view, turn).await,
            Err(error) => self.turn_failed(&view, &error).await,
        }
    }

    /// Puts new words before the model, tells it of an executor that is gone, and counts the turn.
    async fn begin_turn(&self) -> Result<View, Cut> {
        let view = self.view().await?;
        let lost = self.lost_executor().await?;
        let mut write = self.parts.store.write(self.lease).await?;
        if let Some(now) = lost {
            if let Some(text) = now.note {
                write.append_item(self.run, &Item::Note { text }).await?;
            }
            write.set_last_boot(&now.boot_id).await?;
        }
        write.take_words(self.run).await?;
        let counts = Counts { turns: view.run.counts.turns.saturating_add(1), ..view.run.counts };
        write.set_counts(self.run, counts).await?;
        write.commit().await?;
        Ok(self.view().await?)
    }

    async fn store_turn(&self, view: &View, turn: Turn) -> Result<(), Cut> {
        let profile = view.session.profile;
        let run = self.run.to_string();
        let (calls, faults) = name_calls(view, &turn);
        let errors: Vec<Option<String>> = calls
            .iter()
            .zip(&faults)
            .map(|(call, fault)| match fault {
                Some(fault) => Some(format!("This call was not executed: {fault}.")),
                None => {
                    tools::parse(profile, &call.name, &call.arguments).err().map(|error| format!("{error}."))
                }
            })
            .collect();
        let is_failure =
            turn.end == TurnEnd::Cut || (!calls.is_empty() && errors.iter().all(Option::is_some));
        let answered = calls.is_empty() && turn.end == TurnEnd::Complete;
        let counts = view.run.counts;
        let counts = Counts {
            tokens: counts
                .tokens
                .saturating_add(turn.usage.input_tokens)
                .saturating_add(turn.usage.output_tokens),
            failures: match (is_failure, answered) {
                (true, _) => counts.failures.saturating_add(1),
                (false, true) => 0,
                // What the calls come to decides.
                (false, false) => counts.failures,
            },
            tool_calls: counts
                .tool_calls
                .saturating_add(u32::try_from(errors.iter().flatten().count()).unwrap_or(u32::MAX)),
            ..counts
        };

        let mut write = self.parts.store.write(self.lease).await?;
        let usage = Usage {
            input_tokens: turn.usage.input_tokens,
            output_tokens: turn.usage.output_tokens,
            requests: 1,
        };
        write.add_usage(self.run, usage).await?;
        write.set_counts(self.run, counts).await?;
        if !turn.text.is_empty() || !calls.is_empty() {
            write
                .append_item(self.run, &Item::Assistant { text: turn.text.clone(), calls: calls.clone() })
                .await?;
        }
        if !turn.text.is_empty() {
            write
                .append_event(&Event::MessageCompleted { run: run.clone(), text: turn.text.clone() })
                .await?;
        }
        for (call, error) in calls.iter().zip(errors) {
            write
                .append_event(&Event::ToolCall {
                    run: run.clone(),
                    call: call.id.clone(),
                    tool: call.name.clone(),
                    arguments: call.arguments.clone(),
                })
                .await?;
            if let Some(text) = error {
                self.append_result(&mut write, call, &text, true).await?;
            }
        }
        if turn.end == TurnEnd::Cut {
            let text =
                "Your answer was cut at its length limit. Go on from there, in smaller pieces.".to_owned();
            write.append_item(self.run, &Item::Note { text }).await?;
        }
        write.commit().await?;
        Ok(())
    }

    async fn turn_failed(&self, view: &View, error: &ModelError) -> Result<(), Cut> {
        let failures = view.run.counts.failures.saturating_add(1);
        let retrying = error.is_retryable() && failures < view.session.limits.failures;
        tracing::warn!(run = %self.run, code = error.code(), failures, "model turn failed");
        let mut write = self.parts.store.write(self.lease).await?;
        write.set_counts(self.run, Counts { failures, ..view.run.counts }).await?;
        write
            .append_event(&Event::TurnFailed {
                run: self.run.to_string(),
                code: error.code().to_owned(),
                message: error.to_string(),
                retrying,
            })
            .await?;
        write.commit().await?;
        if !error.is_retryable() {
            let end = RunState::Failed { code: error.code().to_owned(), message: error.to_string() };
            return self.end(&end, "the model could not be asked").await;
        }
        if retrying {
            let pause =
                PAUSE.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE);
            self.until_cut(view, tokio::time::sleep(pause)).await?;
        }
        Ok(())
    }
}

/// The turn's calls as they are stored: an id that another call of the session has is replaced, since results, events
/// and answers of the person name a call by its id.
fn name_calls(view: &View, turn: &Turn) -> (Vec<ToolCall>, Vec<Option<CallFault>>) {
    let mut taken: HashSet<&str> = view
        .items
        .iter()
        .flat_map(|stored| calls_of(std::slice::from_ref(stored), stored.run))
        .map(|call| call.id.as_str())
        .collect();
    turn.calls
        .iter()
        .map(|call| {
            let is_free = taken.insert(&call.id);
            let id = if is_free { call.id.clone() } else { format!("call_{}", Uuid::new_v4().as_simple()) };
            (ToolCall { id, name: call.name.clone(), arguments: call.arguments.clone() }, call.fault)
        })
        .unzip()
}

impl From<StoreError> for Cut {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
