//! Contours of a density on cells.

use dpmc::diagnostics::CellDensity;

/// Two ends of a piece of a contour, in the density's coordinates.
pub(super) type Piece = ([f64; 2], [f64; 2]);

/// Pieces of the outline of the smallest region that holds `mass`, by marching squares
/// through the cells' centres.
pub(super) fn outline(density: &CellDensity, mass: f64) -> Vec<Piece> {
    let level = level(density.mass(), mass);
    let [columns, rows] = density.cells().bins();
    let at = |i: usize, k: usize| density.mass()[i * rows + k];
    let mut pieces = Vec::new();
    for i in 0..columns.saturating_sub(1) {
        for k in 0..rows.saturating_sub(1) {
            let corners = [(i, k), (i + 1, k), (i + 1, k + 1), (i, k + 1)];
            let mut crossings = (0..4).filter_map(|side| {
                let (a, b) = (corners[side], corners[(side + 1) % 4]);
                let (va, vb) = (at(a.0, a.1), at(b.0, b.1));
                ((va < level) != (vb < level)).then(|| {
                    let share = (level - va) / (vb - va);
                    let (p, q) = (
                        density.cells().centre(a.0, a.1),
                        density.cells().centre(b.0, b.1),
                    );
                    [0, 1].map(|j| p[j] + share * (q[j] - p[j]))
                })
            });
            while let (Some(from), Some(to)) = (crossings.next(), crossings.next()) {
                pieces.push((from, to));
            }
        }
    }
    pieces
}

/// Mass of the last cell that is taken when cells are taken in falling order up to `mass`.
fn level(masses: &[f64], mass: f64) -> f64 {
    let mut sorted = masses.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    sorted
        .into_iter()
        .find(|m| {
            sum += m;
            sum >= mass
        })
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dpmc::diagnostics::Cells;

    /// The region of a standard normal in the plane that holds mass p is the disc of radius
    /// √(−2 log(1−p)).
    #[test]
    fn regions_of_a_normal_are_discs() {
        let cells = Cells::new([-5.0, -5.0], [5.0, 5.0], [200, 200]).unwrap();
        let log = |t: [f64; 2]| -0.5 * (t[0] * t[0] + t[1] * t[1]);
        let density = CellDensity::from_log_density(cells, log).unwrap();
        for mass in [0.5, 0.9] {
            let radius = (-2.0 * (1.0f64 - mass).ln()).sqrt();
            let pieces = outline(&density, mass);
            assert!(pieces.len() > 100);
            for (from, to) in pieces {
                for point in [from, to] {
                    let found = point[0].hypot(point[1]);
                    assert!((found - radius).abs() < 0.02, "{found} {radius}");
                }
            }
        }
    }
}
