//! Time: utilisation as a curve, and the hours and days at which things happen.

use super::spec::Rhythm;
use crate::DAY_NS;
use crate::model::Rng;
use stats::random::unit;

/// Utilisation over simulated days: straight lines between points, level before the first and after the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<[f64; 2]>,
}

impl Curve {
    /// Points `[day, share of the capacity]`, ascending.
    pub fn new(points: Vec<[f64; 2]>) -> Curve {
        Curve { points }
    }

    /// The share at a day.
    pub fn at(&self, day: f64) -> f64 {
        let after = self.points.partition_point(|p| p[0] <= day);
        match (after.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(after)) {
            (Some([from, low]), Some([to, high])) => low + (high - low) * (day - from) / (to - from),
            (Some([_, share]), None) | (None, Some([_, share])) => *share,
            (None, None) => 0.0,
        }
    }

    /// Moments between two days at which it is to be followed where it falls: from one to the next it falls by `step`
    /// at most, on each of its lines by equal parts, however steep that line and however short.
    pub fn falls(&self, from: f64, to: f64, step: f64) -> Vec<f64> {
        let inside = self.points.iter().map(|p| p[0]).filter(|day| *day > from && *day < to);
        let (mut moments, mut begin) = (Vec::new(), from);
        for end in inside.chain([to]) {
            // A rise gives a negative number, which a cast makes 0.
            let parts = ((self.at(begin) - self.at(end)) / step).ceil() as u32;
            let part = (end - begin) / f64::from(parts.max(1));
            moments.extend((1..=parts).map(|n| begin + part * f64::from(n)));
            begin = end;
        }
        moments
    }

    /// The points.
    pub fn points(&self) -> &[[f64; 2]] {
        &self.points
    }
}

/// The rhythm, ready to draw from.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Share of a day's events up to the end of each hour.
    hours: Vec<f64>,
    /// Activity of each weekday; the mean is 1.
    weekdays: Vec<f64>,
}

impl Clock {
    /// From its weights.
    pub fn new(rhythm: &Rhythm) -> Clock {
        let all: f64 = rhythm.hours.iter().sum();
        let mut sum = 0.0;
        let mut up_to = |w: &f64| {
            sum += w;
            sum / all
        };
        let week: f64 = rhythm.weekdays.iter().sum();
        Clock {
            hours: rhythm.hours.iter().map(&mut up_to).collect(),
            weekdays: rhythm.weekdays.iter().map(|w| w * 7.0 / week).collect(),
        }
    }

    /// A moment of a day, nanoseconds from its beginning.
    pub fn draw_ns(&self, rng: &mut Rng) -> u64 {
        let share = unit(rng);
        let hour = self.hours.partition_point(|end| *end <= share).min(23);
        let hour_ns = DAY_NS / 24;
        hour as u64 * hour_ns + (unit(rng) * hour_ns as f64) as u64
    }

    /// How busy a day is; 1 on average.
    pub fn weekday(&self, day: u32) -> f64 {
        self.weekdays.get(day as usize % 7).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rng;

    #[test]
    fn a_curve_is_straight_between_its_points() {
        let curve = Curve::new(vec![[10.0, 0.2], [20.0, 0.8], [40.0, 0.6]]);
        for (day, share) in [(0.0, 0.2), (10.0, 0.2), (15.0, 0.5), (20.0, 0.8), (30.0, 0.7), (99.0, 0.6)] {
            assert!((curve.at(day) - share).abs() < 1e-12, "{day}: {}", curve.at(day));
        }
    }

    #[test]
    fn a_fall_is_followed_step_by_step() {
        let curve = Curve::new(vec![[10.0, 0.2], [20.0, 0.8], [40.0, 0.6], [40.5, 0.5], [41.0, 0.7]]);
        for (from, to, step, moments) in [
            (0.0, 20.0, 0.01, vec![]),
            (15.0, 25.0, 0.03, vec![22.5, 25.0]),
            (30.0, 31.0, 0.1, vec![31.0]),
            // The whole fall of a day within half of it.
            (40.0, 41.0, 0.026, vec![40.125, 40.25, 40.375, 40.5]),
            (40.25, 42.0, 0.026, vec![40.375, 40.5]),
            (41.0, 50.0, 0.01, vec![]),
        ] {
            let found = curve.falls(from, to, step);
            assert_eq!(found.len(), moments.len(), "{from} to {to}: {found:?}");
            assert!(found.iter().zip(&moments).all(|(a, b)| (a - b).abs() < 1e-9), "{from} to {to}: {found:?}");
        }
    }

    #[test]
    fn hours_and_weekdays_have_their_weights() {
        let mut hours = vec![0.0; 24];
        (hours[3], hours[20]) = (1.0, 3.0);
        let clock = Clock::new(&Rhythm { hours, weekdays: vec![2.0, 2.0, 2.0, 2.0, 2.0, 0.0, 4.0] });
        assert_eq!((clock.weekday(0), clock.weekday(5), clock.weekday(13)), (1.0, 0.0, 2.0));
        let mut rng = rng(2);
        let late = (0..10_000).map(|_| clock.draw_ns(&mut rng) * 24 / DAY_NS).filter(|h| *h == 20).count();
        assert!((7_300..7_700).contains(&late), "{late}");
    }
}
