//! Folders of labelled images as MNIST's are published, and parts of them as such files.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::ReproduceError;

/// Bytes before the images and before the labels of such a file.
const HEADS: [usize; 2] = [16, 8];

/// Files of images and labels.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub images: PathBuf,
    pub labels: PathBuf,
}

/// Labelled images.
#[derive(Clone, Debug)]
pub(super) struct Images {
    /// Height and width.
    pub sides: [u32; 2],
    /// Row-major, one image after the other.
    pub pixels: Vec<u8>,
    pub labels: Vec<u8>,
}

impl Files {
    /// Those of a folder whose names begin so (`train`, `t10k`); `images.idx3` may also be written
    /// `images-idx3`.
    ///
    /// # Errors
    /// [`ReproduceError::NoData`] naming a missing one.
    pub fn of(folder: &Path, part: &str) -> Result<Self, ReproduceError> {
        let find = |what: &str, kind: &str| -> Result<PathBuf, ReproduceError> {
            let [usual, other] =
                ['.', '-'].map(|c| folder.join(format!("{part}-{what}{c}{kind}-ubyte.gz")));
            match other.is_file() {
                true => Ok(std::path::absolute(&other).unwrap_or(other)),
                false if usual.is_file() => Ok(std::path::absolute(&usual).unwrap_or(usual)),
                false => Err(ReproduceError::NoData(usual.display().to_string())),
            }
        };
        Ok(Files {
            images: find("images", "idx3")?,
            labels: find("labels", "idx1")?,
        })
    }

    /// All of it.
    ///
    /// # Errors
    /// [`ReproduceError::Failed`] naming a file that is no such file.
    pub fn read(&self) -> Result<Images, ReproduceError> {
        let [images, labels] = [&self.images, &self.labels].map(|path| unpacked(path));
        let ([images, labels], [a, b]) = ([images?, labels?], HEADS);
        let side = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(images.get(at..at + 4)?.try_into().ok()?))
        };
        let wrong = |path: &Path| {
            ReproduceError::Failed(format!("{} is no such file of images", path.display()))
        };
        let sides = side(8).zip(side(12)).map(|(h, w)| [h, w]);
        let sides = sides.ok_or_else(|| wrong(&self.images))?;
        let labels = labels.get(b..).ok_or_else(|| wrong(&self.labels))?.to_vec();
        let pixels = images.get(a..).unwrap_or_default().to_vec();
        match pixels.len() == labels.len() * (sides[0] * sides[1]) as usize {
            true => Ok(Images {
                sides,
                pixels,
                labels,
            }),
            false => Err(wrong(&self.images)),
        }
    }
}

impl Images {
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    fn size(&self) -> usize {
        (self.sides[0] * self.sides[1]) as usize
    }

    /// The images of these numbers.
    pub fn part(&self, which: impl Iterator<Item = usize>) -> Images {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for k in which {
            pixels.extend_from_slice(&self.pixels[k * self.size()..][..self.size()]);
            labels.push(self.labels[k]);
        }
        Images {
            sides: self.sides,
            pixels,
            labels,
        }
    }

    /// Pixels as a network reads them, in [0, 1].
    pub fn rows(&self) -> Vec<f32> {
        self.pixels.iter().map(|p| f32::from(*p) / 255.0).collect()
    }

    /// Writes them into a folder.
    ///
    /// # Errors
    /// [`ReproduceError::Failed`] where it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Files, ReproduceError> {
        let files = Files {
            images: folder.join("images.idx3-ubyte"),
            labels: folder.join("labels.idx1-ubyte"),
        };
        let file = |path: &Path, sides: &[u32], bytes: &[u8]| {
            let mut all = vec![0, 0, 8, sides.len() as u8];
            sides.iter().for_each(|s| all.extend(s.to_be_bytes()));
            all.extend_from_slice(bytes);
            std::fs::write(path, all)
                .map_err(|e| ReproduceError::Failed(format!("{}: {e}", path.display())))
        };
        let [height, width] = self.sides;
        let count = self.len() as u32;
        file(&files.images, &[count, height, width], &self.pixels)?;
        file(&files.labels, &[count], &self.labels)?;
        Ok(files)
    }
}

fn unpacked(path: &Path) -> Result<Vec<u8>, ReproduceError> {
    let wrong = |e: std::io::Error| ReproduceError::Failed(format!("{}: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut bytes = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(file);
    decoder.read_to_end(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}
