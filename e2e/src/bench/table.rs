//! Rows for people and for programs.

use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

/// One measured thing beside its reference.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    name: String,
    unit: &'static str,
    ours: Side,
    reference: Option<Reference>,
    /// p50 of ours divided by p50 of the reference.
    ratio: Option<f64>,
    goal: Option<String>,
    met: Option<bool>,
    /// Why there is no reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// What was measured, in the row's unit.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Side {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) n: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Reference {
    what: String,
    #[serde(flatten)]
    side: Side,
}

/// What is wanted of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// p50 of ours, in the row's unit.
    AtMost(f64),
    /// p50 of ours divided by p50 of the reference.
    RatioAtMost(f64),
    /// Ours above the reference's same percentile, in the row's unit.
    Above {
        /// For p50.
        p50: f64,
        /// For p99.
        p99: f64,
    },
}

impl Row {
    pub(super) fn new(name: &str, unit: &'static str, ours: Side) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            ours,
            reference: None,
            ratio: None,
            goal: None,
            met: None,
            note: None,
        }
    }

    pub(super) fn with_reference(mut self, what: &str, side: Side) -> Self {
        self.ratio = (side.p50 > 0.0).then(|| self.ours.p50 / side.p50);
        self.reference = Some(Reference { what: what.to_owned(), side });
        self
    }

    pub(super) fn without_reference(mut self, why: &str) -> Self {
        self.note = Some(why.to_owned());
        self
    }

    pub(super) fn wants(mut self, goal: Goal) -> Self {
        let reference = self.reference.as_ref().map(|reference| reference.side);
        let (text, met) = match goal {
            Goal::AtMost(most) => (format!("p50 <= {most} {}", self.unit), Some(self.ours.p50 <= most)),
            Goal::RatioAtMost(most) => {
                (format!("p50 <= {most} x reference"), self.ratio.map(|ratio| ratio <= most))
            }
            Goal::Above { p50, p99 } => (
                format!("p50 <= reference + {p50} {}, p99 <= reference + {p99} {0}", self.unit),
                reference.map(|side| self.ours.p50 <= side.p50 + p50 && self.ours.p99 <= side.p99 + p99),
            ),
        };
        self.goal = Some(text);
        self.met = met;
        self
    }
}

/// Prints every row, those that lose included.
///
/// # Errors
/// When `out` cannot be written.
pub fn print(rows: &[Row], mut out: impl Write) -> anyhow::Result<()> {
    for row in rows {
        let Row { name, unit, ours, .. } = row;
        let met = match row.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "not judged",
        };
        writeln!(out, "{name} [{met}]")?;
        writeln!(
            out,
            "    ours       p50 {:>9.3} {unit}   p99 {:>9.3} {unit}   n {}",
            ours.p50, ours.p99, ours.n
        )?;
        if let Some(Reference { what, side }) = &row.reference {
            let (p50, p99, n) = (side.p50, side.p99, side.n);
            writeln!(out, "    reference  p50 {p50:>9.3} {unit}   p99 {p99:>9.3} {unit}   n {n}   {what}")?;
        }
        let ratio = row.ratio.map_or_else(String::new, |ratio| format!("ratio {ratio:.2}"));
        let goal = row.goal.as_ref().map_or_else(String::new, |goal| format!("goal: {goal}"));
        let note = row.note.as_ref().map_or_else(String::new, |note| format!("no reference: {note}"));
        let facts: Vec<String> = [ratio, goal, note].into_iter().filter(|fact| !fact.is_empty()).collect();
        writeln!(out, "    {}", facts.join("   "))?;
    }
    Ok(())
}

/// Writes the rows as a JSON list.
///
/// # Errors
/// When the file cannot be written.
pub fn write_json(rows: &[Row], path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(rows).context("rows as JSON")?;
    std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(p50: f64, p99: f64) -> Side {
        Side { p50, p99, n: 10 }
    }

    #[test]
    fn a_goal_is_judged_against_the_reference_of_its_row() {
        let row = || Row::new("a", "ms", side(1.4, 3.0)).with_reference("b", side(1.0, 1.0));
        assert_eq!(row().wants(Goal::RatioAtMost(1.4)).met, Some(true));
        assert_eq!(row().wants(Goal::RatioAtMost(1.3)).met, Some(false));
        assert_eq!(row().wants(Goal::Above { p50: 0.5, p99: 3.0 }).met, Some(true));
        assert_eq!(row().wants(Goal::Above { p50: 0.5, p99: 1.0 }).met, Some(false));
        assert_eq!(Row::new("a", "ms", side(1.0, 1.0)).wants(Goal::RatioAtMost(1.0)).met, None);
    }

    #[test]
    fn a_losing_row_is_printed_like_any_other() {
        let row = Row::new("a", "ms", side(2.0, 2.0))
            .with_reference("b", side(1.0, 1.0))
            .wants(Goal::RatioAtMost(1.0));
        let mut text = Vec::new();
        print(&[row], &mut text).expect("print");
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("NOT MET") && text.contains("ratio 2.00"), "{text}");
    }
}
