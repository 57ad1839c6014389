package machine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// SetClock has a process live ahead of its machine, or behind it. Programs ask for the
// time a function that the kernel has put into their memory, and Go keeps in a variable
// where that is: another function is put there, over one that Go never calls, and the
// variable is led to it. What counts seconds from some moment on goes on as before, as
// it does when somebody sets the clock of a machine.
func SetClock(t testing.TB, pid int, program string, by time.Duration) {
	t.Helper()
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	functions := kernelFunctions(t, pid, memory)
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
	if _, err := memory.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(asks)), variable(t, program, "runtime.vdsoClockgettimeSym")); err != nil {
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
func kernelFunctions(t testing.TB, pid int, memory *os.File) map[string]int64 {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
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
func variable(t testing.TB, program, name string) int64 {
	t.Helper()
	file, err := elf.Open(program)
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
