//! Measures `taffrail ui`: its cold start on a laptop, and its page in Chromium.
//!
//! The bars hold for the default sizes. A figure beyond its bar is printed as missed and fails nothing, because a busy
//! machine shows in it.

mod page;
mod start;

use std::fs;

use anyhow::Result;
use clap::Args;
use taffrail_testkit::binary;

/// Measure `taffrail ui`: a cold start over many simulated clusters (time to the first and to all rows, memory, CPU time
/// at rest), and its page in Chromium over 1,000,000 apps (paint, interactions, memory), and over an app of 12,000
/// objects.
#[derive(Args)]
pub(crate) struct Ui {
    /// Number of simulated clusters of the cold start.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    clusters: u32,
    /// Number of objects in each of them.
    #[arg(long, default_value_t = 1800, value_name = "N", value_parser = clap::value_parser!(u32).range(10..))]
    objects: u32,
    /// Number of seconds for which CPU time at rest is measured.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    rest: u32,
    /// Number of clusters, with 100 apps each, that the page shows.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    page_clusters: u32,
    /// Number of times that each view is loaded.
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Number of seconds for which the page follows 200 changes a second.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// Seed of the fleet that the page shows, and of its changes.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Parts to run: the cold start, the page over many apps, the page over an app of many objects; all by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = ["start", "page", "objects"])]
    only: Vec<String>,
}

impl Ui {
    pub(super) fn run(self) -> Result<()> {
        let folder = binary::workspace().join("target/bench/ui");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let is_wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| only == name);
        let measured = || {
            if is_wanted("start") {
                start::measure(&folder, self.clusters, self.objects, self.rest)?;
            }
            if is_wanted("page") {
                page::measure(&folder, &self)?;
            }
            if is_wanted("objects") {
                page::measure_objects(&folder)?;
            }
            Ok(())
        };
        let measured = measured();
        let _ = fs::remove_dir_all(&folder);
        measured
    }
}
