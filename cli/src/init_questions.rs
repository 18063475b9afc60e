//! What `dpmc init` asks at a terminal: what each column is, and its bounds or levels. Answers come
//! from whoever is asked, out of public knowledge: no row is looked at, not even for a default.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use super::init::{Column, Declared, NUMBER, quote};

const HELP: &str = "\
No row is read: bounds and levels come from you, out of public knowledge (a code book, a law), never
from looking at the rows. Enter leaves LOW, HIGH, LEVEL, MAX or S2 in the run file, which `dpmc
check` refuses until somebody replaces them; the end of the input (Ctrl-D) leaves all the rest so.
";

/// A conversation: questions on one side, lines of answers on the other.
pub(super) struct Questions<'a, R, W> {
    input: &'a mut R,
    output: W,
    ended: bool,
}

impl<'a, R: BufRead, W: Write> Questions<'a, R, W> {
    pub fn new(input: &'a mut R, output: W) -> Self {
        Questions {
            input,
            output,
            ended: false,
        }
    }

    fn say(&mut self, text: &str) {
        // Nobody may be there to read it.
        let _ = self.output.write_all(text.as_bytes());
        let _ = self.output.flush();
    }

    /// An answer without the blanks around it; empty for Enter and after the end.
    fn answer(&mut self, question: &str) -> String {
        if self.ended {
            return String::new();
        }
        self.say(&format!("{question}: "));
        let mut line = Vec::new();
        if !matches!(self.input.read_until(b'\n', &mut line), Ok(1..)) {
            self.ended = true;
            self.say("\n");
        }
        // What is not UTF-8 holds a character that no answer takes.
        String::from_utf8_lossy(&line).trim().to_string()
    }

    /// Asks until `read` takes the answer; `None` for Enter.
    fn until<T>(
        &mut self,
        question: &str,
        mut read: impl FnMut(&str) -> Result<T, String>,
    ) -> Option<T> {
        loop {
            let answer = self.answer(question);
            if answer.is_empty() {
                return None;
            }
            if answer.contains(char::REPLACEMENT_CHARACTER) {
                self.say("  text in UTF-8, please\n");
                continue;
            }
            match read(&answer) {
                Ok(value) => return Some(value),
                Err(what) => self.say(&format!("  {what}\n")),
            }
        }
    }

    /// One of the letters; the first for Enter.
    fn choice(&mut self, question: &str, letters: &[char]) -> char {
        let usual = letters.first().copied().unwrap_or_default();
        let read = |answer: &str| match letters.iter().find(|c| c.to_string() == answer) {
            Some(&c) => Ok(c),
            None => {
                let all: Vec<String> = letters.iter().map(char::to_string).collect();
                Err(format!("one of {}, please", all.join(", ")))
            }
        };
        self.until(&format!("{question} [{usual}]"), read)
            .unwrap_or(usual)
    }

    /// A number as TOML has it, or what stands for it.
    fn number(&mut self, question: &str, usual: &str, above: Option<f64>) -> String {
        let read = |answer: &str| match answer.parse::<f64>() {
            Ok(v) if !v.is_finite() => Err("a finite number, please".into()),
            Ok(v) if above.is_some_and(|least| v <= least) => Err(format!(
                "it must be larger than {}",
                above.unwrap_or_default()
            )),
            Ok(v) => Ok(plain(v)),
            Err(_) => Err("a number with a decimal point, please, such as 17 or 0.5".into()),
        };
        self.until(question, read).unwrap_or_else(|| usual.into())
    }

    fn bounds(&mut self, name: &str) -> Bounds {
        let low = self.number(&format!("  lowest {name} that can be"), "LOW", None);
        let high = self.number("  highest", "HIGH", low.parse().ok());
        let numbers = match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) => Some([low, high]),
            _ => None,
        };
        let text = format!("[{low}, {high}]");
        Bounds { text, numbers }
    }

    /// Texts, said back as they were understood; `None` for Enter.
    fn texts(&mut self, question: &str) -> Option<Vec<String>> {
        let texts = self.until(question, texts)?;
        self.say(&format!("  taken as {}\n", list(&texts)));
        Some(texts)
    }

    /// What all columns of a table are.
    pub fn declared(&mut self, columns: &[String]) -> Declared {
        let mut text = format!("The header names {} column(s).\n{HELP}\n", columns.len());
        for (i, name) in columns.iter().enumerate() {
            text += &format!("{:>5}  {}\n", i + 1, name.escape_debug());
        }
        self.say(&text);
        let mut declared = Declared::nothing(columns);
        self.label(columns, &mut declared);
        let others = columns.iter().filter(|c| **c != declared.label.name);
        let others: Vec<&String> = others.collect();
        declared.others = Vec::new();
        let mut before = Some(NUMBER.to_string());
        let mut all_alike = false;
        for (i, name) in others.iter().enumerate() {
            let place = format!("{} of {}", i + 1, others.len());
            if !all_alike {
                match self.feature(&place, name) {
                    Feature::Declared(declaration) => before = Some(declaration),
                    Feature::Dropped => before = None,
                    Feature::AsBefore => {}
                    Feature::AllAsBefore => all_alike = true,
                }
            }
            if let Some(declaration) = &before {
                (declared.others).push(Column::new(name, declaration.as_str()));
            }
        }
        declared
    }

    fn label(&mut self, columns: &[String], declared: &mut Declared) {
        let read = |answer: &str| {
            let by_name = columns.iter().find(|c| *c == answer);
            let by_place = || columns.get(answer.parse::<usize>().ok()?.checked_sub(1)?);
            let found = by_name.or_else(by_place).cloned();
            found.ok_or_else(|| "there is no such column".into())
        };
        let question = format!(
            "\nThe label, which is to be predicted, by name or number [{}]",
            declared.label.name.escape_debug()
        );
        if let Some(label) = self.until(&question, read) {
            declared.label.name = label;
        }
        if self.ended {
            return;
        }
        let name = quoted(&declared.label.name);
        let what = format!("{name} is b: one of two things, n: a number, c: a count");
        match self.choice(&what, &['b', 'n', 'c']) {
            'n' => {
                let bounds = self.bounds(&name);
                declared.label.declaration = format!("clamp = {}", bounds.text);
                if let Some([low, high]) = bounds.numbers {
                    declared.prior_sd = plain((high - low).max(low.abs()).max(high.abs()));
                }
                let sd = self.number(
                    &format!(
                        "  sd of {name} around its prediction, in its own units, where a code book \
                         tells it (Enter: it is learned)"
                    ),
                    "",
                    Some(0.0),
                );
                declared.model = of_numbers(sd.parse().ok(), bounds.numbers);
            }
            'c' => {
                let most = self.until("  largest count; larger ones count as it", |answer| {
                    let count = answer.parse::<u32>().ok().filter(|n| *n > 0);
                    count.ok_or_else(|| "a whole number from 1 on, please".into())
                });
                let most = most.map_or("MAX".into(), |n| n.to_string());
                declared.label.declaration = format!("count = {most}");
                declared.model = vec!["kind = \"poisson\"".into()];
            }
            _ => self.two_things(declared),
        }
    }

    fn two_things(&mut self, declared: &mut Declared) {
        declared.model = vec!["kind = \"logistic\"".into()];
        let question = "  texts that mean 1, separated by commas, in double quotes where a text holds \
             one (0/1: its cells are 0 and 1)";
        let positive = self.until(question, |answer| {
            let texts = texts(answer)?;
            match ["0", "1"].iter().all(|c| texts.iter().any(|t| t == c)) {
                true => Err("both would mean 1; 0/1 says that the cells are 0 and 1".into()),
                false => Ok(texts),
            }
        });
        let Some(positive) = positive else {
            return;
        };
        if let [only] = positive.as_slice()
            && only == "0/1"
        {
            declared.label.declaration = String::new();
            return;
        }
        declared.label.declaration = format!("positive = {}", list(&positive));
        self.say(&format!("  taken as {}\n", list(&positive)));
        let question = "  texts that mean 0 (Enter: all that are not missing)";
        if let Some(negative) = self.texts(question) {
            declared.label.declaration += &format!(", negative = {}", list(&negative));
        }
    }

    /// What a column is.
    fn feature(&mut self, place: &str, name: &str) -> Feature {
        if self.ended {
            return Feature::Declared(NUMBER.into());
        }
        let name = quoted(name);
        let what = format!(
            "\n{place}, {name} is n: a number, l: levels, i: some texts against all others, \
             =: as the one before, a: this and all after it as the one before; d: drop it"
        );
        let declaration = match self.choice(&what, &['n', 'l', 'i', '=', 'a', 'd']) {
            'l' => {
                let question = "  all levels, separated by commas; the first is what the others are \
                     compared with";
                let levels = self.texts(question);
                let levels = levels.unwrap_or_else(|| vec!["LEVEL".into()]);
                // All of them were asked for.
                format!("levels = {}, strict = true", list(&levels))
            }
            'i' => {
                let levels = self.texts("  texts for which it is 1, separated by commas");
                let levels = levels.unwrap_or_else(|| vec!["LEVEL".into()]);
                format!("indicator = {{ in = {} }}", list(&levels))
            }
            '=' => return Feature::AsBefore,
            'a' => return Feature::AllAsBefore,
            'd' => return Feature::Dropped,
            _ => format!("scale = {}", self.bounds(&name).text),
        };
        Feature::Declared(declaration)
    }

    /// Where to write the run file; `None` to print it.
    pub fn file(&mut self) -> Option<PathBuf> {
        self.until(
            "\nFile to write, such as run.toml (Enter prints it)",
            |path| match PathBuf::from(path) {
                path if path.exists() => Err("it exists already; choose another".into()),
                path => Ok(path),
            },
        )
    }
}

/// What was answered of a column.
enum Feature {
    Declared(String),
    Dropped,
    AsBefore,
    /// So are all columns after it.
    AllAsBefore,
}

/// `[low, high]`, or what stands for them.
struct Bounds {
    text: String,
    /// Where both were given.
    numbers: Option<[f64; 2]>,
}

/// The lines of `[model]` for a label that is a number within these bounds.
fn of_numbers(sd: Option<f64>, bounds: Option<[f64; 2]>) -> Vec<String> {
    let variance = sd.map(|sd| sd * sd).filter(|v| v.is_normal());
    let width = bounds.map(|[low, high]| high - low);
    match (variance, width.filter(|w| w.is_normal())) {
        (Some(variance), _) => vec![
            "kind = \"linear\"".into(),
            format!("variance = {}", plain(variance)),
        ],
        (None, Some(width)) => vec![
            "kind = \"gaussian\"   # learns how far labels lie from their predictions:".into(),
            format!(
                "parameters = {{ log_sigma = {{ mean = {:.1}, sd = 1 }} }}   # a sixth of the bounds, or so",
                (width / 6.0).ln()
            ),
        ],
        (None, None) => vec!["kind = \"linear\"".into(), "variance = S2".into()],
    }
}

/// A column's name as a terminal may show it.
fn quoted(name: &str) -> String {
    format!("'{}'", name.escape_debug())
}

/// Texts between commas, each once; those in double quotes may hold commas, and are taken as they
/// are.
fn texts(answer: &str) -> Result<Vec<String>, String> {
    let mut texts: Vec<String> = Vec::new();
    let mut rest = answer;
    loop {
        let (text, after) = match rest.trim_start().strip_prefix('"') {
            Some(inside) => {
                let ends = inside.split_once('"');
                ends.ok_or("a double quote has no second one")?
            }
            None => {
                let (text, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                let text = text.trim();
                if text.is_empty() {
                    return Err("a text before each comma and after the last, please".into());
                }
                (text, after)
            }
        };
        if texts.iter().any(|t| t == text) {
            return Err("each text once, please".into());
        }
        texts.push(text.into());
        match after.trim_start() {
            "" => return Ok(texts),
            after => {
                rest = after
                    .strip_prefix(',')
                    .ok_or("a comma after each quoted text, please")?
            }
        }
    }
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|t| quote(t)).collect();
    format!("[{}]", texts.join(", "))
}

/// A number as TOML has it; whole ones without a decimal point.
fn plain(v: f64) -> String {
    match v.fract() == 0.0 && v.abs() < 1e15 {
        true => format!("{v:.0}"),
        false => toml::Value::Float(v).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(answers: &str) -> (Declared, String) {
        let columns = ["age", "region", "smoker", "height", "ill"].map(String::from);
        let (mut input, mut said) = (answers.as_bytes(), Vec::new());
        let declared = Questions::new(&mut input, &mut said).declared(&columns);
        (declared, String::from_utf8(said).unwrap())
    }

    /// Names and declarations of what the model may use.
    fn others(declared: &Declared) -> Vec<(&str, &str)> {
        let columns = declared.others.iter();
        columns.map(|c| (&*c.name, &*c.declaration)).collect()
    }

    #[test]
    fn answers_become_declarations() {
        let answers = "5\nb\nyes\nno\nn\n18\n90\nl\nnorth, south\ni\ndaily\n=\n";
        let (declared, _) = declared(answers);
        assert_eq!(declared.label.name, "ill");
        let label = "positive = [\"yes\"], negative = [\"no\"]";
        assert_eq!(declared.label.declaration, label);
        let expected = [
            ("age", "scale = [18, 90]"),
            ("region", "levels = [\"north\", \"south\"], strict = true"),
            ("smoker", "indicator = { in = [\"daily\"] }"),
            ("height", "indicator = { in = [\"daily\"] }"),
        ];
        assert_eq!(others(&declared), expected);
    }

    #[test]
    fn quoted_texts_hold_commas() {
        let read = |answer: &str| texts(answer).map(|t| t.join("|"));
        assert_eq!(read("yes, no").unwrap(), "yes|no");
        assert_eq!(read("\"yes\" , \">50,000\"").unwrap(), "yes|>50,000");
        assert_eq!(read("\"\", 5\" pipe").unwrap(), "|5\" pipe");
        for wrong in ["a,", ",a", "a,,b", "a,a", "\"a", "\"a\" b", "a, \"a\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn columns_after_the_rest_are_as_the_one_before() {
        let (declared, said) = declared("\nb\n0,1\n0/1\nn\n0\n9\na\n");
        assert!(said.contains("both would mean 1"), "{said}");
        assert_eq!(declared.label.declaration, "");
        let alike = ["age", "region", "smoker", "height"].map(|c| (c, "scale = [0, 9]"));
        assert_eq!(others(&declared), alike);
        // After a dropped column all that is alike is dropped.
        let (dropped, _) = super::tests::declared("\nb\n0/1\nn\n0\n9\nd\n=\nn\n1\n2\n");
        let kept = [("age", "scale = [0, 9]"), ("height", "scale = [1, 2]")];
        assert_eq!(others(&dropped), kept);
    }

    #[test]
    fn impossible_answers_are_asked_for_again() {
        let (declared, said) =
            declared("shoe\nheight\nx\nn\n1e999\n2.5\n2.5\n3e2\n-1\n3\nd\nd\nd\nd\n");
        assert_eq!(declared.label.name, "height");
        assert_eq!(declared.label.declaration, "clamp = [2.5, 300]");
        assert_eq!(declared.model, ["kind = \"linear\"", "variance = 9"]);
        assert!(declared.others.is_empty());
        for what in [
            "no such column",
            "one of b, n, c",
            "a finite number",
            "larger than 2.5",
            "larger than 0",
        ] {
            assert!(said.contains(what), "{what}: {said}");
        }
    }

    #[test]
    fn enter_and_the_end_leave_placeholders() {
        for answers in ["", "\n", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n"] {
            let (declared, _) = declared(answers);
            assert_eq!(declared.label.name, "ill");
            let label = "positive = [\"LEVEL\"], negative = [\"LEVEL\"]";
            assert_eq!(declared.label.declaration, label);
            let alike = ["age", "region", "smoker", "height"].map(|c| (c, NUMBER));
            assert_eq!(others(&declared), alike, "{answers:?}");
        }
        let (declared, _) = declared("\nc\n\nl\n\ni\n");
        assert_eq!(declared.label.declaration, "count = MAX");
        assert_eq!(
            others(&declared)[0].1,
            "levels = [\"LEVEL\"], strict = true"
        );
        assert_eq!(others(&declared)[1].1, "indicator = { in = [\"LEVEL\"] }");
        let (declared, _) = super::tests::declared("\nn\n");
        assert_eq!(declared.model, ["kind = \"linear\"", "variance = S2"]);
    }

    /// A spread that nobody knows is the model's to learn; priors are in units of the label.
    #[test]
    fn numbers_have_priors_of_their_size() {
        let (declared, _) = declared("\nn\n0\n6000\n\n");
        assert_eq!(declared.prior_sd, "6000");
        let [kind, parameters] = &declared.model[..] else {
            panic!("{:?}", declared.model)
        };
        assert!(kind.starts_with("kind = \"gaussian\""), "{kind}");
        assert!(
            parameters.contains("{ mean = 6.9, sd = 1 }"),
            "{parameters}"
        );
    }
}
