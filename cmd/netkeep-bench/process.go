package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// process is a process on this machine whose use of it is measured. A nil
// process is not measured.
type process struct{ dir string }

// openProcess returns the process with an id, or nil for id 0.
func openProcess(pid int) (*process, error) {
	if pid == 0 {
		return nil, nil
	}
	p := &process{fmt.Sprintf("/proc/%d", pid)}
	if _, err := p.cpu(); err != nil {
		return nil, fmt.Errorf("--server-pid: %w", err)
	}
	return p, nil
}

// begin starts a measurement and returns what ends it. A process that is gone
// shows there.
func (p *process) begin() (end func(requests int) (*serverUse, error)) {
	if p == nil {
		return func(int) (*serverUse, error) { return nil, nil }
	}
	before, _ := p.cpu()
	return func(requests int) (*serverUse, error) { return p.since(before, requests) }
}

// serverUse is what the controller used during a measurement, and the memory
// that it had at the end.
type serverUse struct {
	CPUSeconds         float64 `json:"cpuSeconds"`
	CPUPerRequestMs    float64 `json:"cpuPerRequestMs"`
	RSSMegabytes       float64 `json:"rssMegabytes"`
	AnonymousMegabytes float64 `json:"anonymousMegabytes"`
}

func (u *serverUse) String() string {
	return fmt.Sprintf("cpu %.2fs (%.3fms each)  rss %.0fMB  anon %.0fMB", u.CPUSeconds, u.CPUPerRequestMs, u.RSSMegabytes, u.AnonymousMegabytes)
}

func (p *process) since(before time.Duration, requests int) (*serverUse, error) {
	cpu, err := p.cpu()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(p.dir + "/smaps_rollup")
	if err != nil {
		return nil, err
	}
	rss, anonymous, err := parseSmaps(string(text))
	if err != nil {
		return nil, err
	}
	used := (cpu - before).Seconds()
	return &serverUse{
		CPUSeconds: used, CPUPerRequestMs: 1000 * used / float64(max(requests, 1)),
		RSSMegabytes: float64(rss) / 1024, AnonymousMegabytes: float64(anonymous) / 1024,
	}, nil
}

// cpu is the processor time that the process has used in its life.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(p.dir + "/stat")
	if err != nil {
		return 0, err
	}
	return parseStat(string(text))
}

// parseStat adds user and system time. The fields are counted from the end of
// the program's name, which may hold anything.
func parseStat(text string) (time.Duration, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("/proc stat has too few fields")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// parseSmaps returns resident and anonymous memory in kilobytes.
func parseSmaps(text string) (rss, anonymous int64, err error) {
	found := 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		var into *int64
		switch fields[0] {
		case "Rss:":
			into = &rss
		case "Anonymous:":
			into = &anonymous
		default:
			continue
		}
		if *into, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("/proc smaps_rollup: %w", err)
		}
		found++
	}
	if found != 2 {
		return 0, 0, errors.New("/proc smaps_rollup does not say how much memory is used")
	}
	return rss, anonymous, nil
}
