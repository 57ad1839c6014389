// Command switchboard holds wires between controllers, for tests that cannot import
// them. It is told what to do by lines, until there are no more:
//
//	lay MEMBER ADDRESS    lays a wire to a member, and says where it begins
//	is MEMBER PID         says which process the member is
//	cut MEMBER            cuts it off from all others
//	join MEMBER           does so no more
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"netkeep.internal/test/wires"
)

func main() {
	if err := run(); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func run() error {
	w := wires.New()
	defer w.End()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		said, err := do(w, strings.Fields(lines.Text()))
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		fmt.Println(said)
	}
	return lines.Err()
}

// do does one thing, and returns what to say about it.
func do(w *wires.Wires, words []string) (string, error) {
	if len(words) < 2 {
		return "", fmt.Errorf("%d words are too few", len(words))
	}
	member, err := strconv.Atoi(words[1])
	if err != nil {
		return "", err
	}
	said := strings.Join(words, " ")
	switch {
	case words[0] == "lay" && len(words) == 3:
		at, err := w.Lay(member, words[2])
		return fmt.Sprintf("laid %d %s", member, at), err
	case words[0] == "is" && len(words) == 3:
		pid, err := strconv.Atoi(words[2])
		w.Is(pid, member)
		return said, err
	case words[0] == "cut":
		w.Isolate(member, true)
	case words[0] == "join":
		w.Isolate(member, false)
	default:
		return "", fmt.Errorf("nobody knows what to do")
	}
	return said, nil
}
