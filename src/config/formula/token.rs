//! A formula's text, word by word.

use super::Wrong;

/// Longest formula, in characters.
const LONGEST: usize = 4096;

/// A word of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name; `quoted` stood in backticks and is never a function's.
    Name { name: String, quoted: bool },
    /// A number without a sign.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// Anything else; comparisons have one or two characters.
    Sign(&'static str),
}

/// A word, and the characters where it begins and ends, from 0.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub word: Word,
    pub start: usize,
    pub end: usize,
}

/// Longer ones first.
const SIGNS: [&str; 23] = [
    "==", "!=", "<=", ">=", "||", "%in%", "~", "+", "-", "*", ":", "^", "/", "(", ")", "[", "]",
    ",", "=", "<", ">", "|", "%",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Wrong> {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() > LONGEST {
        let what = format!("a formula has at most {LONGEST} characters");
        return Err(Wrong::at(LONGEST, what));
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&c) = characters.get(at) {
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let (word, end) = word(&characters, at)?;
        found.push(Token {
            word,
            start: at,
            end,
        });
        at = end;
    }
    Ok(found)
}

/// The word that begins at `start`, and where it ends.
fn word(characters: &[char], start: usize) -> Result<(Word, usize), Wrong> {
    let c = characters[start];
    let rest = &characters[start..];
    let digit_follows = rest.get(1).is_some_and(char::is_ascii_digit);
    if c == '`' {
        let (name, end) = quoted(characters, start, '`')?;
        if name.is_empty() {
            return Err(Wrong::at(start, "a column's name is expected in backticks"));
        }
        return Ok((Word::Name { name, quoted: true }, end));
    }
    if c == '"' || c == '\'' {
        let (text, end) = quoted(characters, start, c)?;
        return Ok((Word::Text(text), end));
    }
    if c.is_ascii_digit() || c == '.' && digit_follows {
        return number(characters, start);
    }
    if c.is_alphabetic() || c == '_' || c == '.' {
        let name: String = rest
            .iter()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
            .collect();
        let end = start + name.chars().count();
        let quoted = false;
        return Ok((Word::Name { name, quoted }, end));
    }
    let fits = |sign: &&&str| sign.chars().eq(rest.iter().copied().take(sign.len()));
    match SIGNS.iter().find(fits) {
        Some(sign) => Ok((Word::Sign(sign), start + sign.len())),
        None => Err(Wrong::at(
            start,
            format!(
                "'{c}' is not expected; names with other characters than letters, digits, _ and . stand in backticks"
            ),
        )),
    }
}

/// What stands between two marks; a mark inside is doubled.
fn quoted(characters: &[char], start: usize, mark: char) -> Result<(String, usize), Wrong> {
    let mut text = String::new();
    let mut at = start + 1;
    while let Some(&c) = characters.get(at) {
        match (c == mark, characters.get(at + 1)) {
            (true, Some(next)) if *next == mark => at += 1,
            (true, _) => return Ok((text, at + 1)),
            (false, _) => {}
        }
        text.push(c);
        at += 1;
    }
    Err(Wrong::at(start, format!("this {mark} is never closed")))
}

fn number(characters: &[char], start: usize) -> Result<(Word, usize), Wrong> {
    let mut digits = String::new();
    for &c in &characters[start..] {
        let exponent = digits.ends_with(['e', 'E']);
        if !(c.is_alphanumeric() || c == '.' || exponent && matches!(c, '+' | '-')) {
            break;
        }
        digits.push(c);
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Word::Number(value), start + digits.chars().count())),
        _ => Err(Wrong::at(start, format!("'{digits}' is not a number"))),
    }
}
