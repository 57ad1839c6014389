//go:build unix && !linux

package screen

// waiting asks how many bytes wait: FIONREAD, which is the same number everywhere.
const waiting = 0x4004667f
