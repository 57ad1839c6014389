package screen

import "golang.org/x/sys/unix"

// waiting asks how many bytes wait.
const waiting = unix.TIOCINQ
