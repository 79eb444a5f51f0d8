//! Sweeps of a program that is none of fsage's: a script that prints what a benchmark would.

mod runs;
