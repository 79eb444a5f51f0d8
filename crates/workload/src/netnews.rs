//! A news server (*Journaling Versus Soft Updates*, Seltzer et al., USENIX 2000, section 5.2): **unbatch** takes in
//! articles, **expire** removes the oldest.
//!
//! A spool holds articles, a file each, in a directory for each group; popular groups get most of them. **Unbatch**
//! reads batches as they came; for each article it looks into the history whether it is a duplicate (a random read),
//! and if it is not, writes the article's file, and appends to the history and to the group's overview file. **Expire**
//! reads the history, removes the files of the oldest articles in the order they came, writes the history anew without
//! them, and the overview of every group. Articles a second, by the sum of the calls' times; unbatch begins with cold
//! caches, nothing is synced.
//!
//! Articles, bytes and shares of the paper are given from memory of it (approximate): a spool of 2 GB, 78,000 arrivals
//! with 270 MB, 250,000 articles with 1.5 GB expired. The default is a twentieth of that. The number of groups, how
//! unequal they are, the sizes of history and overview entries and the share of duplicates are ours.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::{Driver, poll};
use crate::phase::Phase;
use crate::point::Point;
use crate::random::Random;
use crate::repeat::Repeat;
use crate::sample::Sample;
use posix::{FileSystem, OpenFlags};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::show;

/// What an article adds to the history and to its group's overview, bytes.
const HISTORY_BYTES: u64 = 90;
const OVERVIEW_BYTES: u64 = 300;
/// A look into the history.
const LOOKUP_BYTES: u64 = 1024;
/// Articles in a batch.
const BATCH: u32 = 100;
/// One arrival in so many is a duplicate.
const DUPLICATES: u64 = 10;
/// Spread of article sizes: standard deviation of their natural logarithm.
const SPREAD: f64 = 1.2;
const ARTICLES_MAX: u32 = 16 << 20;
const PIECE_BYTES: u64 = 8 << 10;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Articles in the spool at the start.
    pub articles: u32,
    /// Their mean size.
    pub article_bytes: u32,
    /// Articles that arrive, with duplicates.
    pub arrivals: u32,
    /// Their mean size.
    pub arrival_bytes: u32,
    /// Articles that expire: the oldest.
    pub expired: u32,
    /// Groups, a directory each.
    pub groups: u32,
    /// How often; its seed also makes sizes and groups.
    pub repeat: Repeat,
}

impl Default for Options {
    /// A twentieth of the paper's.
    fn default() -> Options {
        Options { articles: 16_650, arrivals: 3_900, expired: 12_500, groups: 100, ..Options::paper() }
    }
}

impl Options {
    /// The paper's spool (approximate).
    pub fn paper() -> Options {
        Options {
            articles: 333_000,
            article_bytes: 6_000,
            arrivals: 78_000,
            arrival_bytes: 3_460,
            expired: 250_000,
            groups: 500,
            repeat: Repeat::default(),
        }
    }

    /// A two-hundredth of the paper's, once.
    pub fn quick() -> Options {
        Options {
            articles: 1_665,
            arrivals: 390,
            expired: 1_250,
            groups: 20,
            repeat: Repeat::once(),
            ..Options::paper()
        }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "netnews"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at most, in whole blocks of 4 KiB with half a kilobyte of metadata an article.
    fn need_bytes(&self) -> u64 {
        let of = |count: u32, mean: u32| {
            u64::from(count) * (u64::from(mean) + 2048 + 512 + HISTORY_BYTES * 2 + OVERVIEW_BYTES)
        };
        of(self.articles, self.article_bytes) + 2 * of(self.arrivals, self.arrival_bytes)
    }

    fn need_inodes(&self) -> u64 {
        u64::from(self.articles) + u64::from(self.arrivals) + 2 * u64::from(self.groups) + 10
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| Err(WorkloadError::Options(what));
        let all = [self.articles, self.article_bytes, self.arrivals, self.arrival_bytes, self.expired, self.groups];
        if all.contains(&0) || self.articles.max(self.arrivals) > ARTICLES_MAX {
            return wrong(format!("articles (at most {ARTICLES_MAX}), their sizes and groups are at least 1"));
        }
        if self.expired > self.articles {
            return wrong("no more articles can expire than are there at the start".into());
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Netnews::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "A news spool of {} articles in {} groups; {} arrive (unbatch), and the {} oldest go (expire). Articles a \
             second; nothing is synced.",
            show::count(self.articles.into()),
            show::count(self.groups.into()),
            show::count(self.arrivals.into()),
            show::count(self.expired.into())
        )
    }
}

/// An article: its group and its number there, and its size.
#[derive(Clone, Copy, Debug)]
struct Article {
    group: u32,
    number: u32,
    size: u64,
}

/// The spool.
struct Spool<'o> {
    options: &'o Options,
    top: PathBuf,
    random: Random,
    /// In the order they came.
    articles: Vec<Article>,
    /// Articles that each group has had.
    counts: Vec<u32>,
    /// Running sums of the groups' shares.
    popularity: Vec<f64>,
    history_bytes: u64,
}

impl<'o> Spool<'o> {
    fn new(options: &'o Options, top: &Path) -> Spool<'o> {
        // The n-th most popular group gets 1/n of what the first gets.
        let mut sum = 0.0;
        let shares = (1..=options.groups).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        Spool {
            options,
            top: top.to_path_buf(),
            random: Random::new(options.repeat.seed, "netnews"),
            articles: Vec::new(),
            popularity: shares.collect(),
            counts: vec![0; options.groups as usize],
            history_bytes: 0,
        }
    }

    fn group(&self, group: u32) -> PathBuf {
        self.top.join(format!("g{group:04}"))
    }

    fn path(&self, article: &Article) -> PathBuf {
        self.group(article.group).join(article.number.to_string())
    }

    fn history(&self) -> PathBuf {
        self.top.join("history")
    }

    fn draw(&mut self, mean_bytes: u32) -> Article {
        let all = self.popularity.last().copied().unwrap_or(1.0);
        let at = self.random.unit() * all;
        let group = self.popularity.partition_point(|sum| *sum <= at).min(self.counts.len().saturating_sub(1));
        let size = self.random.log_normal(f64::from(mean_bytes), SPREAD);
        let number = self.counts.get_mut(group).map_or(0, |count| {
            *count += 1;
            *count
        });
        Article { group: u32::try_from(group).unwrap_or(0), number, size }
    }

    /// The state before: articles, history, overviews.
    fn fill(&mut self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        for group in 0..self.options.groups {
            driver.mkdir(&self.group(group))?;
        }
        for _ in 0..self.options.articles {
            let article = self.draw(self.options.article_bytes);
            driver.create(&self.path(&article), article.size, PIECE_BYTES)?;
            self.articles.push(article);
        }
        for group in 0..self.options.groups {
            let count = self.counts.get(group as usize).copied().unwrap_or(0);
            driver.create(&self.overview(group), u64::from(count.max(1)) * OVERVIEW_BYTES, PIECE_BYTES)?;
        }
        self.history_bytes = u64::from(self.options.articles) * HISTORY_BYTES;
        driver.create(&self.history(), self.history_bytes, PIECE_BYTES)?;
        for batch in 0..self.options.arrivals.div_ceil(BATCH) {
            let articles = BATCH.min(self.options.arrivals - batch * BATCH);
            let bytes = u64::from(articles) * u64::from(self.options.arrival_bytes);
            driver.create(&self.batch(batch), bytes, PIECE_BYTES)?;
        }
        Ok(())
    }

    fn batch(&self, batch: u32) -> PathBuf {
        self.top.join(format!("batch{batch:05}"))
    }

    fn overview(&self, group: u32) -> PathBuf {
        self.group(group).join(".overview")
    }

    fn unbatch(&mut self, driver: &mut Driver<'_>) -> Result<u64, WorkloadError> {
        const LOOKUP: &str = "looking into the history";
        let history = self.history();
        let index = driver.open(LOOKUP, &history, OpenFlags::READ)?;
        let mut duplicates = 0;
        let mut done = Ok(());
        for arrival in 0..self.options.arrivals {
            done = self.arrive(driver, arrival, index, &mut duplicates);
            if done.is_err() {
                break;
            }
        }
        let closed = driver.close(LOOKUP, &history, index);
        done.and(closed)?;
        Ok(duplicates)
    }

    fn arrive(
        &mut self,
        driver: &mut Driver<'_>,
        arrival: u32,
        index: posix::Fd,
        duplicates: &mut u64,
    ) -> Result<(), WorkloadError> {
        if arrival.is_multiple_of(BATCH) {
            let batch = self.batch(arrival / BATCH);
            let articles = BATCH.min(self.options.arrivals - arrival);
            driver.read_uncounted(&batch, u64::from(articles) * u64::from(self.options.arrival_bytes), PIECE_BYTES)?;
            if arrival > 0 {
                driver.unlink_uncounted(&self.batch(arrival / BATCH - 1))?;
            }
        }
        let history = self.history();
        let len_bytes = LOOKUP_BYTES.min(self.history_bytes);
        let offset = self.random.below(self.history_bytes - len_bytes + 1);
        driver.transfer_at("looking into the history", &history, index, offset, len_bytes, false)?;
        if self.random.below(DUPLICATES) == 0 {
            *duplicates += 1;
            driver.count(1, 0);
            return Ok(());
        }
        let article = self.draw(self.options.arrival_bytes);
        driver.create(&self.path(&article), article.size, PIECE_BYTES)?;
        driver.append(&history, HISTORY_BYTES)?;
        driver.append(&self.overview(article.group), OVERVIEW_BYTES)?;
        self.history_bytes += HISTORY_BYTES;
        self.articles.push(article);
        Ok(())
    }

    fn expire(&mut self, driver: &mut Driver<'_>) -> Result<(), WorkloadError> {
        driver.read_uncounted(&self.history(), self.history_bytes, PIECE_BYTES)?;
        let expired: Vec<Article> = self.articles.drain(..self.options.expired as usize).collect();
        for article in expired {
            driver.unlink(&self.path(&article), article.size)?;
        }
        let kept = self.articles.len() as u64;
        driver.replace(&self.history(), &self.top.join("history.new"), kept * HISTORY_BYTES, PIECE_BYTES)?;
        let mut left = vec![0_u64; self.counts.len()];
        for article in &self.articles {
            if let Some(count) = left.get_mut(article.group as usize) {
                *count += 1;
            }
        }
        for (group, count) in (0..).zip(left) {
            poll()?;
            let (old, new) = (self.overview(group), self.group(group).join(".overview.new"));
            driver.replace(&old, &new, count * OVERVIEW_BYTES, PIECE_BYTES)?;
        }
        Ok(())
    }
}

/// The benchmark on one target.
pub(crate) struct Netnews {
    options: Options,
}

impl Netnews {
    pub(crate) fn new(options: &Options) -> Result<Netnews, WorkloadError> {
        options.check()?;
        Ok(Netnews { options: options.clone() })
    }

    fn phases(&self, driver: &mut Driver<'_>, top: &Path) -> Result<Vec<Sample>, WorkloadError> {
        let mut spool = Spool::new(&self.options, top);
        spool.fill(driver)?;
        driver.begin_cold()?;
        let duplicates = spool.unbatch(driver)?;
        let unbatch = driver.end(Phase::Unbatch).with_counts(&[("duplicates", duplicates)]);
        driver.begin_warm()?;
        spool.expire(driver)?;
        let expire = driver.end(Phase::Expire).with_counts(&[("articles kept", spool.articles.len() as u64)]);
        Ok(vec![unbatch, expire])
    }
}

impl Prepared for Netnews {
    fn points(&self) -> Vec<Point> {
        vec![Point { label: "news".into(), size_bytes: None, stage: 0 }]
    }

    fn once(&mut self, driver: &mut Driver<'_>, _: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let top = top("netnews", tag);
        in_own_directory(driver, &top, |driver| self.phases(driver, &top))
    }
}
