//! Fits the correction distribution of `dp-barker` and prints its components and error:
//! `cargo run --release --example correction [C]`. The laboratory's figure `heikkila-s6` puts Seita
//! 2017's ridge form beside it.

use dpmc::privacy::Correction;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = std::env::args().nth(1).map(|text| text.parse::<f64>());
    let variances = match given {
        Some(variance) => vec![variance?],
        None => vec![1.0, 2.0, 3.0],
    };
    for variance in variances {
        let fit = Correction::fit(variance)?;
        println!("C = {variance}: sup |S' - S| = {:.2e}", fit.error());
        println!("  {:>10} {:>8} {:>8}", "weight", "+-mean", "sd");
        for c in fit.components() {
            println!("  {:>10.6} {:>8.3} {:>8.3}", c.weight, c.mean, c.sd);
        }
    }
    Ok(())
}
