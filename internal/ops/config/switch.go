package config

import "strconv"

// Switch is whether something is on; auto leaves that to the controller.
type Switch string

// The values of a Switch.
const (
	On   Switch = "true"
	Off  Switch = "false"
	Auto Switch = "auto"
)

// Maybe reports whether it is on, or may be.
func (s Switch) Maybe() bool { return s == On || s == Auto }

// parseSwitch takes what is taken for true and false elsewhere, and auto.
func parseSwitch(text string) (Switch, error) {
	if text == string(Auto) {
		return Auto, nil
	}
	on, err := strconv.ParseBool(text)
	if on {
		return On, err
	}
	return Off, err
}
