//go:build !race

package wire

const poisons = false
