//! What formulas stand for, what is refused at which character, and that nothing panics.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::expand::{LabelColumns, expand};
use super::{Wrong, formula_name};
use crate::config::schema::{ColumnEntry, FeatureEntry};
use crate::data::Transform;

const COLUMNS: &str = r#"
age = { scale = [18, 90], missing = 40 }
income = { clamp = [0, 1e6] }
pay = { scale = [1, 1e5], transform = "log" }
region = { levels = ["north", "south", "west"] }
town = { levels = ["a"], groups = { b = ["b1", "b2"] }, reference = "b", strict = true }
insured = { indicator = { in = ["yes"] } }
visits = { count = 77 }
"hours-per-week" = { scale = [1, 99] }
"a `b`" = { scale = [0, 1] }
"log(age)" = { scale = [0, 1] }
empty = {}
"#;

fn columns() -> BTreeMap<String, ColumnEntry> {
    toml::from_str(COLUMNS).unwrap()
}

/// A declaration in few words.
fn short(entry: &FeatureEntry) -> String {
    let mut words = entry.column.clone().unwrap_or("1".into());
    if let Some(transform) = entry.transform {
        words = format!("{}({words})", transform.name());
    }
    if let Some(degree) = entry.polynomial {
        words += &format!("^{degree}");
    }
    if let Some(spline) = &entry.spline {
        words += &format!("~{:?}", spline.knots);
    }
    if entry.one_hot.is_some() {
        words += &format!("/{}", entry.reference.as_deref().unwrap_or("all"));
    }
    if let Some(i) = &entry.indicator {
        let texts = i.one_of.iter().flatten().map(|t| format!("={t}"));
        words.extend(texts);
        words.extend(i.above.map(|v| format!(">{v}")));
        words.extend(i.below.map(|v| format!("<{v}")));
    }
    words
}

/// Levels that share a prior have all their coefficients, after the others', and their slopes come
/// last; each says its hierarchy. Twice the same is once.
#[test]
fn levels_may_share_a_prior() {
    for (formula, short) in [
        ("visits ~ age + (1 | region)", "1 age region/all"),
        (
            "visits ~ (age + insured || region) + age*insured",
            "1 age insured=yes region/all | age:insured=yes age:region insured=yes:region",
        ),
        (
            "visits ~ 0 + (1 | region) + (1 + age | region) + age",
            "age region/all | age:region",
        ),
    ] {
        assert_eq!(stands_for(formula), short, "{formula}");
    }
    let formula = "visits ~ log(income) + (log(income) | region)";
    let found = expand(formula, &columns(), LabelColumns::default()).unwrap();
    let mains = found.features.iter().map(|m| m.hierarchy.as_deref());
    assert_eq!(mains.collect::<Vec<_>>(), [None, None, Some("region")]);
    let own = found.interactions[0].hierarchy.as_deref();
    assert_eq!(own, Some("log(income) | region"));
}

/// An offset keeps the units that its column has after the transform, and is no feature.
#[test]
fn an_offset_is_no_feature() {
    for (formula, bounds, transform) in [
        ("visits ~ age + offset(age)", [18.0, 90.0], None),
        (
            "visits ~ offset(log(age)) + age",
            [18.0, 90.0],
            Some(Transform::Log),
        ),
        (
            "visits ~ (age + offset(log(age)))",
            [18.0, 90.0],
            Some(Transform::Log),
        ),
    ] {
        assert_eq!(stands_for(formula), "1 age");
        let found = expand(formula, &columns(), LabelColumns::default()).unwrap();
        let entry = found.offset.unwrap().entry;
        assert_eq!((entry.clamp, entry.transform), (Some(bounds), transform));
        assert_eq!((entry.scale, entry.missing), (None, Some(40.0)));
    }
}

/// Features, then interactions behind a bar.
fn stands_for(formula: &str) -> String {
    let found = expand(formula, &columns(), LabelColumns::default())
        .unwrap_or_else(|e| panic!("{formula}: {e:?}"));
    let mains: Vec<String> = found.features.iter().map(|f| short(&f.entry)).collect();
    let products = found.interactions.iter();
    let products: Vec<String> = products.map(|p| p.entry.features.join(":")).collect();
    match products.is_empty() {
        true => mains.join(" "),
        false => format!("{} | {}", mains.join(" "), products.join(" ")),
    }
}

/// What is refused, with what the character at fault is followed by.
fn refused(formula: &str) -> String {
    match expand(formula, &columns(), LabelColumns::default()) {
        Ok(found) => panic!("{formula}: {found:?}"),
        Err(Wrong::Formula { place, what }) => {
            let rest: String = formula.chars().skip(place).collect();
            format!("[{rest}] {what}")
        }
        Err(Wrong::Column { name, part, what }) => format!("{name}.{part}: {what}"),
    }
}

#[test]
fn formulas_stand_for_features_in_order() {
    for (formula, features) in [
        ("visits ~ age", "1 age"),
        ("visits~age+income", "1 age income"),
        ("visits ~ 1", "1"),
        ("visits ~ 0 + age", "age"),
        ("visits ~ age - 1", "age"),
        ("visits ~ -1 + age", "age"),
        ("visits ~ + age", "1 age"),
        ("visits ~ 0 + age + 1", "1 age"),
        ("visits ~ age - 0", "1 age"),
        ("~ age", "1 age"),
        ("visits ~ age + age", "1 age"),
        ("visits ~ (age + income)", "1 age income"),
        ("visits ~ age + income - age", "1 income"),
        ("visits ~ log1p(income) + age", "1 log1p(income) age"),
        (
            "visits ~ sqrt(income) + log( age )",
            "1 sqrt(income) log(age)",
        ),
        ("visits ~ asinh(income)", "1 asinh(income)"),
        ("visits ~ pay", "1 log(pay)"),
        ("visits ~ poly(age, 3)", "1 age^3"),
        ("visits ~ poly(log(age), degree = 2)", "1 log(age)^2"),
        ("visits ~ ns(age, knots = [30, 50.5])", "1 age~[30.0, 50.5]"),
        (
            "visits ~ ns(pay, knots = c(3, 1e4))",
            "1 log(pay)~[3.0, 10000.0]",
        ),
        (
            "visits ~ `hours-per-week` + `a ``b```",
            "1 hours-per-week a `b`",
        ),
        // Levels count from the first one, or from what is stated.
        ("visits ~ region + town", "1 region/north town/b"),
        ("visits ~ factor(region)", "1 region/north"),
        ("visits ~ C(region, ref = \"west\")", "1 region/west"),
        ("visits ~ factor(region, 'south')", "1 region/south"),
        ("visits ~ factor(town, ref = 'b')", "1 town/b"),
        // Without an intercept the first ones are all there, as in R.
        ("visits ~ 0 + region + town", "region/all town/b"),
        (
            "visits ~ 0 + age + town + region",
            "age town/all region/north",
        ),
        ("visits ~ insured", "1 insured=yes"),
        (
            "visits ~ I(age > 65) + I(age < 30.5) + age",
            "1 age>65 age<30.5 age",
        ),
        (
            "visits ~ I(region == 'west') + I(nowhere in [\"x\", \"y\"])",
            "1 region=west nowhere=x=y",
        ),
        ("visits ~ I(town %in% c('b1', 'a'))", "1 town=b1=a"),
        ("visits ~ I(income > -5e-1) + I(nowhere > -5e-1)", ""),
    ] {
        if features.is_empty() {
            assert!(refused(formula).contains("outside the bounds"), "{formula}");
            continue;
        }
        assert_eq!(stands_for(formula), features, "{formula}");
    }
}

#[test]
fn products_follow_the_features() {
    for (formula, features) in [
        (
            "visits ~ region * insured",
            "1 region/north insured=yes | region:insured=yes",
        ),
        (
            "visits ~ age + income + income:age",
            "1 age income | income:age",
        ),
        (
            "visits ~ age:income + age + income",
            "1 age income | age:income",
        ),
        (
            "visits ~ age * income * region",
            "1 age income region/north | age:income age:region income:region age:income:region",
        ),
        (
            "visits ~ (age + income + region)^2",
            "1 age income region/north | age:income age:region income:region",
        ),
        (
            "visits ~ (age + income + region)^3 - age:income:region - age:income",
            "1 age income region/north | age:region income:region",
        ),
        (
            "visits ~ (age + income) * region",
            "1 age income region/north | age:region income:region",
        ),
        ("visits ~ age * age", "1 age"),
        ("visits ~ age + age:age", "1 age"),
        (
            "visits ~ ns(age, knots = [50]) * log1p(income)",
            "1 age~[50.0] log1p(income) | age:log1p(income)",
        ),
        (
            "visits ~ age + ns(age, knots = [50]) + age:insured + insured",
            "1 age age~[50.0] insured=yes | age:insured=yes",
        ),
        (
            "visits ~ pay * I(age > 65)",
            "1 log(pay) age>65 | log(pay):age>65",
        ),
        ("visits ~ 0 + age * income", "age income | age:income"),
    ] {
        assert_eq!(stands_for(formula), features, "{formula}");
    }
}

/// A dot is every declared column but the label, so all of them must be features.
#[test]
fn a_dot_is_all_the_others() {
    let mut few = columns();
    few.retain(|name, _| ["age", "region", "visits"].contains(&name.as_str()));
    let found = |formula: &str| {
        let found = expand(formula, &few, LabelColumns::default()).unwrap();
        let mains: Vec<String> = found.features.iter().map(|f| short(&f.entry)).collect();
        mains.join(" ")
    };
    assert_eq!(found("visits ~ ."), "1 age region/north");
    assert_eq!(found("visits ~ . - age"), "1 region/north");
    assert!(refused("visits ~ .").starts_with("empty.: give exactly one"));
}

#[test]
fn the_label_is_no_term() {
    assert!(refused("visits ~ age + visits").starts_with("[visits] 'visits' is the label"));
    let label = LabelColumns {
        label: Some("age"),
        event: None,
    };
    assert!(expand("~ age", &columns(), label).is_err());
    let label = LabelColumns {
        label: Some("y"),
        event: Some("age"),
    };
    assert!(expand("~ age", &columns(), label).is_err());
    let mut two = columns();
    two.retain(|name, _| ["age", "income"].contains(&name.as_str()));
    let all = expand("~ .", &two, label).unwrap();
    assert!(
        all.features
            .iter()
            .all(|m| m.entry.column.as_deref() != Some("age"))
    );
}

#[test]
fn what_is_wrong_is_said_at_its_character() {
    for (formula, says) in [
        ("", "[] a formula has a ~"),
        ("visits", "[] a formula has a ~"),
        ("age + income", "[] a formula has a ~"),
        (
            "visits ~",
            "[] a column, a function of one or '(' is expected, not the end",
        ),
        ("visits ~ age +", "[] a column"),
        (
            "visits ~ age income",
            "[income] +, -, *, : or the end is expected, not 'income'",
        ),
        ("visits ~ age ~ income", "[~ income] a formula has one ~"),
        (
            "log(visits) ~ age",
            "[(visits) ~ age] left of ~ stands one column",
        ),
        ("visits | trials(n) ~ age", "[| trials(n) ~ age] left of ~"),
        ("3 ~ age", "[3 ~ age] the label's column"),
        ("visits ~ 0", "[] no term is left"),
        ("visits ~ 2", "[2] 2 is no term"),
        (
            "visits ~ agee",
            "[agee] column 'agee' is not declared: write agee = {",
        ),
        ("visits ~ agee", "the nearest that is declared is age"),
        (
            "visits ~ hours-per-week",
            "[hours-per-week] column 'hours' is not declared",
        ),
        ("visits ~ hours-per-week", "is `hours-per-week`"),
        ("visits ~ `x y`", "write \"x y\" = {"),
        (
            "visits ~ age - income",
            "[income] takes away a term that is not there",
        ),
        ("visits ~ age ? income", "[? income] '?' is not expected"),
        ("visits ~ `age", "[`age] this ` is never closed"),
        ("visits ~ ``", "[``] a column's name is expected"),
        (
            "visits ~ 1e999 + age",
            "[1e999 + age] '1e999' is not a number",
        ),
        ("visits ~ (age", "[] ')' is expected, not the end"),
        (
            "visits ~ age)",
            "[)] +, -, *, : or the end is expected, not ')'",
        ),
        // Products.
        (
            "visits ~ age:income",
            "[age:income] age:income multiplies columns",
        ),
        (
            "visits ~ age * income - age",
            "[age * income - age] age:income multiplies",
        ),
        ("visits ~ age / income", "[/ income] nested terms"),
        ("visits ~ age %in% income", "[%in% income] nested terms"),
        ("visits ~ age^2", "[^2] ^ is for sums in parentheses"),
        (
            "visits ~ (age + income)^x",
            "[x] a whole number from 1 to 10",
        ),
        ("visits ~ (age + income)^11", "[11] a whole number"),
        (
            "visits ~ (age - 1) * income",
            "[age - 1) * income] 1 and 0 are added",
        ),
        ("visits ~ age:1", "[1] 1 and 0"),
        (
            "visits ~ 0 + region * age",
            "[region * age] without an intercept 'region'",
        ),
        (
            "visits ~ age + ns(age, knots = [50]) * insured",
            "[ns(age, knots = [50]) * insured] whether ns(age, knots = [50]) or age is multiplied",
        ),
        (
            "visits ~ log(age) * insured + `log(age)`",
            "[log(age) * insured + `log(age)`] whether log(age) or `log(age)` is multiplied",
        ),
        // The same column twice.
        (
            "visits ~ age + poly(age, 2)",
            "[poly(age, 2)] 'poly(age, 2)' says again",
        ),
        (
            "visits ~ region + factor(region, ref = 'west')",
            "[factor(region, ref = 'west')]",
        ),
        (
            "visits ~ region + I(region == 'west')",
            "[I(region == 'west')] 'I(region == 'west')' says again",
        ),
        // Functions.
        (
            "visits ~ exp(age)",
            "[exp(age)] 'exp' is no function of formulas",
        ),
        ("visits ~ log(age + 1)", "[+ 1)] log is of one column"),
        (
            "visits ~ log(region)",
            "[log(region)] 'region' is no number",
        ),
        (
            "visits ~ log(pay)",
            "[log(pay)] [columns] pay says transform = \"log\" already",
        ),
        ("visits ~ poly(age)", "[)] ',' is expected"),
        ("visits ~ poly(age, 1)", "[1)] a degree from 2 to 10"),
        (
            "visits ~ poly(age, 2, raw = TRUE)",
            "[, raw = TRUE)] poly(x, 3) has a degree",
        ),
        (
            "visits ~ poly(income, 2)",
            "[poly(income, 2)] a curve needs [columns] income = { scale",
        ),
        (
            "visits ~ ns(age)",
            "[)] ns(x, knots = [30, 50]) needs its knots",
        ),
        (
            "visits ~ ns(age, df = 3)",
            "[df = 3)] ns(x, knots = [30, 50]) needs its knots",
        ),
        (
            "visits ~ ns(age, 3)",
            "[3)] ns(x, knots = [30, 50]) needs its knots",
        ),
        (
            "visits ~ ns(age, knots = [])",
            "[])] a number is expected, not ']'",
        ),
        (
            "visits ~ ns(age, knots = 30)",
            "[30)] a list such as [1, 2] is expected",
        ),
        (
            "visits ~ bs(age, df = 3)",
            "[bs(age, df = 3)] curves are ns",
        ),
        ("visits ~ scale(age)", "[scale(age)] how a column is scaled"),
        (
            "visits ~ factor(age)",
            "[factor(age)] factor needs [columns] age = { levels",
        ),
        (
            "visits ~ factor(region, ref = 'east')",
            "['east')] 'east' is none of the levels of 'region'",
        ),
        (
            "visits ~ factor(region, ref = 'east')",
            "which are north, south, west",
        ),
        (
            "visits ~ factor(town, ref = 'a')",
            "['a')] [columns] town says reference = \"b\"",
        ),
        (
            "visits ~ factor(region, levels = ['a'])",
            "[levels = ['a'])] factor(x, ref",
        ),
        ("visits ~ I(age^2)", "[^2)] I(…) holds a comparison"),
        (
            "visits ~ I(age >= 3)",
            "[>= 3)] a threshold itself counts as 0",
        ),
        (
            "visits ~ I(region != 'west')",
            "[!= 'west')] name the texts",
        ),
        (
            "visits ~ I(age == 3)",
            "[3)] a text in quotes (\"1\" matches the number 1) is expected",
        ),
        (
            "visits ~ I(age > 100)",
            "[I(age > 100)] 100 lies outside the bounds [18, 90]",
        ),
        (
            "visits ~ I(region > 3)",
            "[I(region > 3)] 'region' has levels",
        ),
        (
            "visits ~ I(region == 'east')",
            "[I(region == 'east')] 'east' is none of the levels",
        ),
        ("visits ~ I(age", "[] I(…) holds"),
        // What is not to be had yet says what to do.
        (
            "visits ~ age * offset(income)",
            "[offset(income)] an offset is added alone, and belongs to no product",
        ),
        (
            "visits ~ age - offset(income)",
            "[offset(income)] an offset is not taken away",
        ),
        (
            "visits ~ age + offset(income) + offset(log1p(income))",
            "[offset(log1p(income))] a formula has one offset",
        ),
        (
            "visits ~ age + (offset(income) | region)",
            "[offset(income) | region)] an offset has no coefficient",
        ),
        (
            "visits ~ age + offset(region)",
            "[offset(region)] 'region' is no number",
        ),
        (
            "visits ~ age + offset(log(pay))",
            "[offset(log(pay))] [columns] pay says transform",
        ),
        (
            "visits ~ age + offset(visits)",
            "[offset(visits)] 'visits' is the label",
        ),
        (
            "visits ~ age + offset(2 * income)",
            "[2 * income)] a column is expected",
        ),
        // Levels that share a prior.
        (
            "visits ~ age + 1 | region",
            "[| region] levels that share a prior stand in parentheses",
        ),
        (
            "visits ~ (1 | nowhere)",
            "[nowhere)] column 'nowhere' is not declared",
        ),
        (
            "visits ~ insured + (1 | age)",
            "[age)] 'age' has no levels in [columns]",
        ),
        (
            "visits ~ (1 | town)",
            "town.reference: levels that share a prior have a coefficient each",
        ),
        (
            "visits ~ (1 | factor(region))",
            "[factor(region))] the levels that share a prior stand in [columns]",
        ),
        (
            "visits ~ (1 | region:town)",
            "[:town)] the levels of one column",
        ),
        (
            "visits ~ region + (1 | region)",
            "[(1 | region)] the levels of 'region' are a term of their own too",
        ),
        (
            "visits ~ (age | region)",
            "[(age | region)] (age | region) are deviations from the slope of age",
        ),
        (
            "visits ~ age + (0 + age | region)",
            "[(0 + age | region)] slopes without intercepts",
        ),
        (
            "visits ~ age * (1 | region)",
            "[(1 | region)] levels that share a prior are added alone",
        ),
        (
            "visits ~ age - (1 | region)",
            "[(1 | region)] levels that share a prior are not taken away",
        ),
        (
            "visits ~ age + insured + (age:insured | region)",
            "[age:insured | region)] a level's slopes are of single columns",
        ),
        ("visits ~ (1 | region", "[] ')' is expected"),
        // Declarations that fit no feature.
        ("age ~ visits", "visits.count: says how a label is read"),
        ("visits ~ empty", "empty.: give exactly one of"),
    ] {
        let message = refused(formula);
        assert!(message.contains(says), "{formula}: {message}");
    }
}

#[test]
fn long_and_deep_formulas_are_refused() {
    let deep = format!("visits ~ {}age{}", "(".repeat(100), ")".repeat(100));
    assert!(refused(&deep).contains("nested more than 64 deep"));
    let long = format!("visits ~ {}age", "age + ".repeat(1000));
    assert!(refused(&long).contains("at most 4096 characters"));
    let names: Vec<String> = (0..40).map(|i| format!("x{i}")).collect();
    let entry = &columns()["age"];
    let many = names.iter().map(|n| (n.clone(), entry.clone())).collect();
    let error = expand(
        &format!("~ ({})^4", names.join(" + ")),
        &many,
        LabelColumns::default(),
    );
    let Err(Wrong::Formula { what, .. }) = error else {
        panic!("{error:?}");
    };
    assert!(what.contains("more than 1000 terms"), "{what}");
}

#[test]
fn names_are_written_as_they_are_read() {
    for (name, text) in [
        ("age", "age"),
        ("x.1", "x.1"),
        ("hours-per-week", "`hours-per-week`"),
        ("a `b`", "`a ``b```"),
        ("1st", "`1st`"),
        ("Größe", "Größe"),
    ] {
        assert_eq!(formula_name(name), text);
        let columns = BTreeMap::from([(name.to_string(), columns()["age"].clone())]);
        let found = expand(&format!("~ {text}"), &columns, LabelColumns::default()).unwrap();
        assert_eq!(found.features[1].entry.column.as_deref(), Some(name));
    }
}

const SOUP: [&str; 34] = [
    "~",
    "+",
    "-",
    "*",
    ":",
    "^",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "==",
    "<",
    ">",
    "|",
    "/",
    "0",
    "1",
    "2",
    "3e",
    "-7",
    "age",
    "region",
    "`a ``b```",
    "'north'",
    "poly(",
    "ns(",
    "log(",
    "factor(",
    "I(",
    "c(",
    "in",
    ".",
];

proptest! {
    /// Any text is read or refused at one of its characters.
    #[test]
    fn any_text_is_read_or_refused(
        text in "(visits *~)?.{0,60}",
        soup in proptest::collection::vec(0..SOUP.len(), 0..30),
    ) {
        let soup: Vec<&str> = soup.into_iter().map(|i| SOUP[i]).collect();
        for formula in [text, format!("visits ~ {}", soup.join(" ")), soup.concat()] {
            match expand(&formula, &columns(), LabelColumns::default()) {
                Err(Wrong::Formula { place, .. }) => {
                    prop_assert!(place <= formula.chars().count(), "{}", formula);
                }
                Err(Wrong::Column { name, .. }) => prop_assert!(columns().contains_key(&name)),
                Ok(found) => prop_assert!(!found.features.is_empty()),
            }
        }
    }
}
