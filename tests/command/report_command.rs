//! `dpmc report`: one page that needs nothing beside it, says what the certificate says, and shows
//! no name as anything but text.

use std::path::Path;
use std::process::Command;

use crate::common::place::{Place, RUN, edit, number};
use serde_json::Value;

/// Nothing on the page runs, or is fetched from elsewhere.
fn assert_stands_alone(page: &str) {
    for foreign in ["<script", "src=", "url(", "@import", "<link", "javascript:"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // An element of a picture that is not closed swallows those after it.
    for element in ["line", "circle", "polyline", "text"] {
        let (open, closed) = (format!("<{element} "), format!("</{element}>"));
        let own = page.matches("/>").count() + page.matches(&closed).count();
        assert!(own >= page.matches(&open).count(), "{element}");
    }
    let links = page.matches("http").count();
    assert_eq!(links, page.matches("http://www.w3.org/2000/svg").count());
    for once in [
        "<!DOCTYPE html>",
        "<title>",
        "<h1>",
        "lang=\"en\"",
        "<main>",
    ] {
        assert_eq!(page.matches(once).count(), 1, "{once}");
    }
}

#[test]
fn a_private_run_is_reported_with_its_guarantee_its_cost_and_its_results() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out out --iterations 40 --chains 2 --epsilon 3 --delta 1e-6");
    place.works("report out --out page.html");
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert_stands_alone(&page);
    let certificate = place.certificate("out");
    assert!(page.contains("ε = 3, δ = 1e-6"), "{page}");
    let factor = number(&certificate, "epsilon").exp();
    let stated = page.split("by a factor of at most ").nth(1).unwrap();
    let stated: f64 = stated.split(',').next().unwrap().parse().unwrap();
    assert!(
        (factor..factor + 0.01).contains(&stated),
        "{stated} {factor}"
    );
    // (e³ + δ)/(e³ + 1), unless the filter's own law allows for less.
    let right = page.split("guesses right at most ").nth(1).unwrap();
    let right: f64 = right.split(' ').next().unwrap().parse().unwrap();
    assert!(right > 50.0 && right <= 95.3, "{right}");
    for warning in certificate["warnings"].as_array().unwrap() {
        let escaped = warning.as_str().unwrap().replace('<', "&lt;");
        assert!(page.contains(&escaped), "{warning}");
    }
    let summary = place.works("summary out");
    let names = summary.lines().skip(1).map_while(|l| l.split(' ').next());
    for name in names.take_while(|name| !name.is_empty()) {
        assert!(
            page.contains(&format!("<th scope=\"row\">{name}</th>")),
            "{name}"
        );
        assert!(
            page.contains(&format!("Draws of {name} in order")),
            "{name}"
        );
    }
    let decisions = "random decisions on moves, by all rows</th><td>80</td><td>100.0 %";
    assert!(page.contains(decisions));
}

#[test]
fn a_run_without_privacy_is_said_to_be_none() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out out --iterations 40 --not-private --seed 1");
    place.works("report out --out page.html");
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert_stands_alone(&page);
    assert!(page.contains("This run is not private."));
    assert!(!page.contains("Differentially private"));
}

#[test]
fn names_are_text_and_a_folder_without_a_run_is_refused() {
    let place = Place::new(RUN);
    let table = std::fs::read_to_string(place.path("people.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    let evil = "<b>x&y</b>";
    let names = header.split(',').map(|n| if n == "a" { evil } else { n });
    let header = names.collect::<Vec<_>>().join(",");
    place.write("people.csv", &format!("{header}\n{rows}"));
    place.write("run.toml", &edit(RUN, "\"a\"", &format!("\"{evil}\"")));
    place.works("sample run.toml --out out --iterations 20");
    place.works("report out --out page.html");
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("&lt;b&gt;x&amp;y&lt;/b&gt;"));
    assert!(!page.contains(evil));
    std::fs::create_dir(place.path("empty")).unwrap();
    assert!(place.refuses("report empty").contains("empty"));
    let failed = place.dpmc("report out --out no/page.html");
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("no/page.html"));
}

/// Every subcommand has its page and is completed.
#[test]
fn shells_and_manuals_know_every_subcommand() {
    let place = Place::new(RUN);
    let help = place.works("--help");
    let commands = help.split("Commands:").nth(1).unwrap();
    let commands = commands.split("Options:").next().unwrap().lines();
    let names: Vec<&str> = commands
        .filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 10 && names.contains(&"report"), "{names:?}");
    place.works("man pages");
    for shell in ["bash", "zsh", "fish"] {
        let text = place.works(&format!("completions {shell}"));
        for name in &names {
            assert!(text.contains(name), "{shell}: {name}");
        }
    }
    for name in names {
        let page = place.path(&format!("pages/dpmc-{name}.1"));
        let text = std::fs::read_to_string(page).unwrap();
        assert!(
            text.contains(".SH OPTIONS") || text.contains(".SH SYNOPSIS"),
            "{name}"
        );
    }
    assert!(place.path("pages/dpmc.1").exists());
    assert!(place.refuses("completions csh").contains("csh"));
}

/// Has a browser show a page to its end; its document, and what it said on the console.
fn shown(browser: &str, page: &Path) -> (String, Vec<String>) {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--window-size=1400,1000",
            "--virtual-time-budget=30000",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|l| l.contains("CONSOLE"));
    let console = console.map(String::from).collect();
    (String::from_utf8(output.stdout).unwrap(), console)
}

/// What the accessibility rules of axe-core say of a page: the rules that it breaks, and those that
/// could not be decided.
fn judged(browser: &str, axe: &str, page: &Path) -> (Value, Value) {
    const PROBE: &str = "axe.run().then(found => {
        const told = rules => rules.map(r => [r.id, r.help, r.nodes.map(n => n.html)]);
        const result = document.createElement('pre');
        result.id = 'axe-says';
        result.textContent = JSON.stringify([told(found.violations), told(found.incomplete)]);
        document.body.appendChild(result);
    })";
    let text = std::fs::read_to_string(page).unwrap();
    let script = format!("<script>{axe}</script><script>{PROBE}</script></body>");
    let probed = page.with_extension("probed.html");
    std::fs::write(&probed, edit(&text, "</body>", &script)).unwrap();
    let (document, _) = shown(browser, &probed);
    let said = document.split("<pre id=\"axe-says\">").nth(1);
    let said = said.unwrap_or_else(|| panic!("axe-core did not end: {document}"));
    let said = said.split("</pre>").next().unwrap();
    let said = said.replace("&lt;", "<").replace("&gt;", ">");
    let mut said: Value = serde_json::from_str(&said.replace("&amp;", "&")).unwrap();
    (said[0].take(), said[1].take())
}

/// In Chromium, where `DPMC_CHROMIUM` names it and `DPMC_AXE` the file `axe.min.js` of axe-core.
#[test]
fn a_browser_shows_the_page_and_axe_finds_no_fault() {
    let given = |name| std::env::var(name).ok();
    let (Some(browser), Some(axe)) = (given("DPMC_CHROMIUM"), given("DPMC_AXE")) else {
        println!("skipped: DPMC_CHROMIUM and DPMC_AXE name no browser and no axe.min.js");
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let place = Place::new(RUN);
    let optimiser = edit(RUN, "\"barker\"\nstep = 0.0001", "\"sgd\"");
    place.write("optimiser.toml", &optimiser);
    for (name, sample) in [
        ("private", "run.toml --iterations 40 --chains 2"),
        ("open", "run.toml --iterations 40 --not-private --seed 1"),
        (
            "points",
            "optimiser.toml --iterations 40 --not-private --seed 1",
        ),
    ] {
        place.works(&format!("sample {sample} --quiet --out {name}"));
        place.works(&format!("report {name} --out {name}.html"));
        let page = place.path(&format!("{name}.html"));
        let (document, console) = shown(&browser, &page);
        assert!(document.contains("<h1>"), "{document}");
        assert!(console.is_empty(), "{name}: {console:?}");
        let (broken, undecided) = judged(&browser, &axe, &page);
        assert_eq!(broken, serde_json::json!([]), "{name}");
        for rule in undecided.as_array().unwrap() {
            // What lies behind text within a picture, axe-core does not know: here it is white.
            let nodes = rule[2].as_array().unwrap().iter();
            let mut others = nodes.filter(|html| !html.as_str().unwrap().starts_with("<text "));
            assert!(
                rule[0] == "color-contrast" && others.next().is_none(),
                "{name}: {rule}"
            );
        }
    }
}
