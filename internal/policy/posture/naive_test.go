package posture_test

import (
	"regexp"
	"strings"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// naive judges by reading everything that ever happened, from the end. It
// follows the words of the rules and shares no code with the package.
type naive struct {
	checks []*model.PostureCheck
	log    []happening
}

// happening is a response, or a pass of the second factor, in an API session.
type happening struct {
	at       time.Time
	session  string
	pass     bool
	response posture.Response
}

// last returns the last response in an API session that is wanted.
func (n *naive) last(session, typ string, wanted func(posture.Response) bool) (posture.Response, bool) {
	for i := len(n.log) - 1; i >= 0; i-- {
		if h := n.log[i]; !h.pass && h.session == session && h.response.TypeID == typ && (wanted == nil || wanted(h.response)) {
			return h.response, true
		}
	}
	return posture.Response{}, false
}

// judge says what comes of a check: for one that only tells, that it passes.
func (n *naive) judge(c *model.PostureCheck, session posture.Session, now time.Time) posture.Result {
	found := n.find(c, session, now)
	if c.Mode == "report" {
		return posture.Result{Passing: true, Timeout: -1, TimeoutRemaining: -1, WouldRefuse: !found.Passing}
	}
	return found
}

func (n *naive) find(c *model.PostureCheck, session posture.Session, now time.Time) posture.Result {
	if c.TypeID == "MFA" {
		return n.mfa(c, session, now)
	}
	return posture.Result{Passing: n.passes(session.ID, c), Timeout: -1, TimeoutRemaining: -1}
}

func (n *naive) passes(session string, c *model.PostureCheck) bool {
	switch c.TypeID {
	case "OS":
		r, ok := n.last(session, "OS", nil)
		return ok && osMatches(c.OperatingSystems, r)
	case "DOMAIN":
		r, ok := n.last(session, "DOMAIN", nil)
		reported := strings.ToLower(r.Domain)
		for _, d := range c.Domains {
			if listed := strings.ToLower(d); ok && listed == reported {
				return true
			}
		}
		return false
	case "MAC":
		r, _ := n.last(session, "MAC", nil)
		for _, listed := range c.MACAddresses {
			for _, reported := range r.MACAddresses {
				if a := digits(listed); a != "" && a == digits(reported) {
					return true
				}
			}
		}
		return false
	case "PROCESS":
		r, ok := n.last(session, "PROCESS", func(r posture.Response) bool {
			return r.ID == c.ID || r.Path == c.Process.Path && n.names(r.ID, r.Path)
		})
		var signers []string
		if c.Process.SignerFingerprint != "" {
			signers = append(signers, c.Process.SignerFingerprint)
		}
		return ok && programMatches(r, c.Process.Hashes, signers)
	}
	matching := 0
	for _, p := range c.Processes {
		r, ok := n.last(session, "PROCESS", func(r posture.Response) bool { return r.Path == p.Path && n.names(r.ID, r.Path) })
		if ok && programMatches(r, p.Hashes, p.SignerFingerprints) {
			matching++
		}
	}
	return matching > 0 && (c.Semantic == model.AnyOf || matching == len(c.Processes))
}

// names reports whether the check with an id is about the program with a path.
func (n *naive) names(id, path string) bool {
	for _, c := range n.checks {
		if c.ID != id {
			continue
		}
		if c.Process != nil && c.Process.Path == path {
			return true
		}
		for _, p := range c.Processes {
			if p.Path == path {
				return true
			}
		}
	}
	return false
}

func osMatches(accepted []model.OperatingSystem, r posture.Response) bool {
	byType := map[string][]string{}
	for _, os := range accepted {
		byType[strings.ToLower(os.Type)] = os.Versions
	}
	versions, ok := byType[strings.ToLower(r.Type)]
	if !ok || len(versions) == 0 {
		return ok
	}
	for _, v := range versions {
		if inRange(r.Version, v) {
			return true
		}
	}
	return false
}

// inRange knows ranges of one comparison with a version of three digits, and
// versions of up to three digits with something behind them.
func inRange(version, limit string) bool {
	found := regexp.MustCompile(`^v?([0-9])(?:\.([0-9]))?(?:\.([0-9]))?`).FindStringSubmatch(version)
	if found == nil {
		return false
	}
	for i := range found {
		if found[i] == "" {
			found[i] = "0"
		}
	}
	op, want, _ := strings.Cut(limit, " ")
	order := strings.Compare(strings.Join(found[1:], "."), want)
	switch op {
	case "<":
		return order < 0
	case ">=":
		return order >= 0
	}
	return order == 0
}

var notHex = regexp.MustCompile(`[^0-9a-f]`)

func digits(s string) string { return notHex.ReplaceAllString(strings.ToLower(s), "") }

func programMatches(r posture.Response, hashes, signers []string) bool {
	return r.IsRunning && (len(hashes) == 0 || oneInCommon(hashes, []string{r.Hash})) &&
		(len(signers) == 0 || oneInCommon(signers, r.SignerFingerprints))
}

func oneInCommon(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if d := digits(x); d != "" && d == digits(y) {
				return true
			}
		}
	}
	return false
}

// mfa follows the story of the session: its last pass, and the first wake and
// unlock after that.
func (n *naive) mfa(c *model.PostureCheck, session posture.Session, now time.Time) posture.Result {
	r := posture.Result{Timeout: -1}
	if c.TimeoutSeconds > 0 {
		r.Timeout = c.TimeoutSeconds
	}
	var passed, woken, unlocked *time.Time
	for _, h := range n.log {
		if h.session != session.ID {
			continue
		}
		switch at := h.at; {
		case h.pass:
			passed, woken, unlocked = &at, nil, nil
		case passed != nil && h.response.TypeID == "ENDPOINT_STATE" && at.After(*passed):
			if h.response.Woken && woken == nil {
				woken = &at
			}
			if h.response.Unlocked && unlocked == nil {
				unlocked = &at
			}
		}
	}
	var ends []time.Time
	if passed != nil && c.TimeoutSeconds > 0 {
		ends = append(ends, passed.Add(time.Duration(c.TimeoutSeconds)*time.Second))
	}
	if woken != nil && c.PromptOnWake {
		ends = append(ends, woken.Add(5*time.Minute))
	}
	if unlocked != nil && c.PromptOnUnlock {
		ends = append(ends, unlocked.Add(5*time.Minute))
	}
	r.Passing, r.TimeoutRemaining = passed != nil, -1
	if passed == nil {
		r.TimeoutRemaining = 0
	}
	for i, end := range ends {
		left := 0
		for end.After(now.Add(time.Duration(left) * time.Second)) {
			left++
		}
		r.Passing = r.Passing && left > 0
		if i == 0 || left < r.TimeoutRemaining {
			r.TimeoutRemaining = left
		}
	}
	if c.IgnoreLegacyEndpoints && session.SDK.Version < "0.25.0" {
		r.TimeoutRemaining = -1
	}
	return r
}
