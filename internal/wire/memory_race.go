//go:build race

package wire

// poisons has memory that nobody has a hold of overwritten where the race detector
// looks on: tests see there who still reads it, and whoever still writes it is seen
// by the detector.
const poisons = true
