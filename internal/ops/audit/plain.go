package audit

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// plain reads entries in the very form that they are written in, as far as columns
// tell of them: members in their order, and texts that say nothing in other signs.
// Every entry is read once to be packed, and this takes a fraction of what reading an
// entry takes that may have any form. What it reads it uses again with the next.
type plain struct{ entry model.AuditEntry }

// of is the entry of a line, whatever its form. It is the reader's own until the next.
func (p *plain) of(at line) (*model.AuditEntry, error) {
	if p.read(at.text) {
		return &p.entry, nil
	}
	return at.entry()
}

// read reports whether the text has that form.
func (p *plain) read(text []byte) bool {
	e, m := &p.entry, &members{rest: text, sign: '{', good: true}
	m.text(`"id":`, &e.ID)
	e.CreatedAt, e.UpdatedAt = m.moment(`"createdAt":`), m.moment(`"updatedAt":`)
	m.number(`"number":`, &e.Number)
	m.text(`"event":`, &e.Event)
	defaults := m.text(`"outcome":`, &e.Outcome)
	m.text(`"reason":`, &e.Reason)
	defaults = m.number(`"count":`, &e.Count) && defaults
	e.FirstAt, e.LastAt = m.optional(`"firstAt":`), m.optional(`"lastAt":`)
	m.text(`"controllerId":`, &e.ControllerID)
	m.text(`"actorKind":`, &e.ActorKind)
	m.text(`"actorId":`, &e.ActorID)
	m.text(`"actorName":`, &e.ActorName)
	m.text(`"apiSessionId":`, &e.APISessionID)
	m.text(`"factors":`, &e.Factors)
	m.text(`"address":`, &e.Address)
	m.text(`"operation":`, &e.Operation)
	m.text(`"requestId":`, &e.RequestID)
	m.text(`"targetKind":`, &e.TargetKind)
	m.text(`"targetId":`, &e.TargetID)
	m.text(`"targetName":`, &e.TargetName)
	m.skip(`"before":`)
	m.skip(`"after":`)
	m.text(`"previous":`, &e.Previous)
	return defaults && m.good && m.sign == ',' && string(m.rest) == "}"
}

// members are those of an object that are left to read.
type members struct {
	rest []byte
	sign byte // that comes before the next
	good bool
}

// at reports whether the next member has a name, and goes to its value.
func (m *members) at(name string) bool {
	if n := len(name); m.good && len(m.rest) > n && m.rest[0] == m.sign && string(m.rest[1:n+1]) == name {
		m.rest, m.sign = m.rest[n+1:], ','
		return true
	}
	return false
}

// bad gives up.
func (m *members) bad() { m.good, m.rest = false, nil }

// quoted reads what is between quotes.
func (m *members) quoted() []byte {
	if len(m.rest) > 0 && m.rest[0] == '"' {
		wide := false
		for i, c := range m.rest[1:] {
			switch {
			case c == '"':
				text := m.rest[1 : i+1]
				m.rest = m.rest[i+2:]
				if wide && !utf8.Valid(text) {
					m.bad()
				}
				return text
			case c == '\\' || c < ' ':
				m.bad()
				return nil
			}
			wide = wide || c >= utf8.RuneSelf
		}
	}
	m.bad()
	return nil
}

// text reads a text, which is often the one that is there already.
func (m *members) text(name string, is *string) bool {
	if !m.at(name) {
		*is = ""
		return false
	}
	if text := m.quoted(); string(text) != *is {
		*is = string(text)
	}
	return true
}

func (m *members) moment(name string) (is kind.Moment) {
	if m.at(name) {
		is = kind.MomentOf(m.time())
	}
	return is
}

func (m *members) optional(name string) *time.Time {
	if !m.at(name) {
		return nil
	}
	at := m.time()
	return &at
}

// time reads a time between quotes.
func (m *members) time() (is time.Time) {
	if is.UnmarshalText(m.quoted()) != nil {
		m.bad()
	}
	return is
}

func (m *members) number(name string, is *int64) bool {
	*is = 0
	if !m.at(name) {
		return false
	}
	n := 0
	for n < len(m.rest) && '0' <= m.rest[n] && m.rest[n] <= '9' {
		n++
	}
	var err error
	if *is, err = strconv.ParseInt(string(m.rest[:n]), 10, 64); err != nil || n > 1 && m.rest[0] == '0' {
		m.bad()
		return true
	}
	m.rest = m.rest[n:]
	return true
}

// skip reads an object that nothing is to be known of but that it is one.
func (m *members) skip(name string) {
	if !m.at(name) {
		return
	}
	depth, quoted := 0, false
	for i := 0; i < len(m.rest); i++ {
		switch c := m.rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 {
			object := m.rest[:i+1]
			if m.rest = m.rest[i+1:]; !bytes.HasPrefix(object, []byte("{")) || !jsontext.Value(object).IsValid() {
				m.bad()
			}
			return
		}
	}
	m.bad()
}
