package cluster_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// apart is how far the clocks of two controllers are from each other.
const apart = 5 * time.Minute

func init() {
	faults["clocks"] = fault{
		begin: func(t *testing.T, _ *team, leader *node) { leader.setClock(t, apart) },
		lasts: func(t *testing.T, c *team, leader *node) {
			c.works(t, leader)
			for _, n := range c.nodes {
				c.eventually(t, fmt.Sprintf("controller %d to say that clocks are apart", n.n), n.saysApart)
			}
			c.eventually(t, "the one whose clock it is to be not ready", func() bool {
				return leader.says503("ahead of that of the other controllers")
			})
			for _, n := range c.others(leader) {
				if n.says503("of this machine is") {
					t.Errorf("controller %d, whose clock is right, is not ready for it", n.n)
				}
			}
			leader.setClock(t, -apart)
			c.works(t, leader)
			c.eventually(t, "it to say that its clock is behind", func() bool {
				return leader.says503("behind that of the other controllers")
			})
		},
		end: func(t *testing.T, c *team, leader *node) {
			leader.setClock(t, 0)
			c.eventually(t, "the one whose clock is right again to be ready", func() bool { return !leader.says503("clock") })
			for _, n := range c.nodes {
				c.eventually(t, fmt.Sprintf("controller %d to say no more that clocks are apart", n.n), func() bool { return !n.saysApart() })
			}
		},
	}
}

// saysApart is whether the status of a controller tells of clocks.
func (n *node) saysApart() bool {
	status, text := n.hear(http.MethodGet, "status", nil, nil)
	return status == http.StatusOK && strings.Contains(text, "the clocks of this controller and another are")
}

// says503 is whether a controller is not ready, for the reason that its clock is wrong.
func (n *node) says503(reason string) bool {
	resp, err := n.http.Get("https://" + n.listen + "/health/ready")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), `"name":"clock","ok":false`) && strings.Contains(string(text), reason)
}

// works looks whether what one controller gives out is good at all, and what others
// give out there.
func (c *team) works(t *testing.T, odd *node) {
	t.Helper()
	for _, from := range c.nodes {
		var session tokenAnswer
		c.eventually(t, fmt.Sprintf("a login at controller %d", from.n), func() bool {
			return from.as("").ask(http.MethodPost, "authenticate?method=password", M{"username": "admin", "password": servertest.Password}, &session) == http.StatusOK
		})
		for _, at := range c.nodes {
			if at != odd && from != odd {
				continue
			}
			if status, text := at.as(session.Data.Token).hear(http.MethodGet, "current-identity", nil, nil); status != http.StatusOK {
				t.Errorf("a login at controller %d is answered %d by controller %d: %s", from.n, status, at.n, text)
			}
		}
		if status := from.as(session.Data.Token).ask(http.MethodDelete, "current-api-session", nil, nil); status != http.StatusOK {
			t.Errorf("a logout at controller %d is answered %d", from.n, status)
		}
	}
}

// as is the controller for somebody who has another token.
func (n *node) as(token string) *node {
	team, out := *n.team, *n
	team.token, out.team = token, &team
	return &out
}

// setClock has a process live ahead of its machine, or behind it. Programs ask for the
// time a function that the kernel has put into their memory, and Go keeps in a variable
// where that is: another function is put there, over one that Go never calls, and the
// variable is led to it. What counts seconds from some moment on goes on as before, as
// it does when somebody sets the clock of a machine.
func (n *node) setClock(t *testing.T, by time.Duration) {
	t.Helper()
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.cmd.Process.Pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	functions := n.kernelFunctions(t, memory)
	asks := functions["__vdso_clock_gettime"]
	if by != 0 {
		// Two places, in turn: the other may be in use.
		asks = functions["__vdso_gettimeofday"]
		if by < 0 {
			asks += 32
		}
		if _, err := memory.WriteAt(askAndAdd(int32(by/time.Second)), asks); err != nil {
			t.Fatalf("a clock cannot be set here: %v", err)
		}
	}
	if _, err := memory.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(asks)), n.variable(t, "runtime.vdsoClockgettimeSym")); err != nil {
		t.Fatalf("a clock cannot be set here: %v", err)
	}
}

// askAndAdd is machine code of a function like clock_gettime whose clock of the day is
// so many seconds ahead.
func askAndAdd(seconds int32) []byte {
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, the number of clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: which clock
		0x75, 0x07, // jne to ret
		0x48, 0x81, 0x06, // add qword [rsi], seconds
	}
	return append(binary.LittleEndian.AppendUint32(code, uint32(seconds)), 0xc3) // ret
}

// kernelFunctions is where the functions are that the kernel has put into a process.
func (n *node) kernelFunctions(t *testing.T, memory *os.File) map[string]int64 {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var from, to int64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				t.Fatal(err)
			}
		}
	}
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int64{}
	for _, s := range symbols {
		at[s.Name] = from + int64(s.Value)
	}
	return at
}

// variable is where a variable of the program is.
func (n *node) variable(t *testing.T, name string) int64 {
	t.Helper()
	file, err := elf.Open(n.binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
	if i < 0 || file.Type != elf.ET_EXEC {
		t.Fatalf("%s of the program is nowhere", name)
	}
	return int64(symbols[i].Value)
}
