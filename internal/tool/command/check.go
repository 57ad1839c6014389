package command

import (
	"encoding/xml"
	"os"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

// breach is an assertion that changes would break.
type breach struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	What   string     `json:"what"`
	Count  int        `json:"count"`
	Listed []offender `json:"listed"`
}

// offender is who or what breaks an assertion.
type offender struct {
	IdentityID string `json:"identityId"`
	Identity   string `json:"identity"`
	ServiceID  string `json:"serviceId"`
	Service    string `json:"service"`
	PolicyID   string `json:"policyId"`
	Policy     string `json:"policy"`
}

// checked is what is said of all assertions.
type checked struct {
	Broken     int       `json:"broken"`
	Assertions []finding `json:"assertions"`
}

// finding is an assertion, and whether it holds.
type finding struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Holds  bool       `json:"holds"`
	Idle   bool       `json:"idle"`
	What   string     `json:"what"`
	Count  int        `json:"count"`
	Listed []offender `json:"listed"`
}

// codeAssertion is what a controller calls a refusal for the sake of an assertion.
const codeAssertion = "ASSERTION_BROKEN"

// overrideFlag has the changes of a command made though they break assertions.
func overrideFlag(cmd *cobra.Command) {
	cmd.Flags().Bool("override", false, "Make the changes though they break assertions; the audit log tells of it.")
}

func overrides(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("override")
	return f != nil && f.Value.String() == "true"
}

// tellBreaches says which assertions a plan would break.
func (s *session) tellBreaches(p *plan) {
	if len(p.Assertions) == 0 {
		return
	}
	s.Printf("\n")
	for _, b := range p.Assertions {
		s.Printf("%s %s: %s\n", s.Bad("breaks"), screen.Plain(b.Name), screen.Plain(b.What))
	}
	if s.override {
		s.Printf("That is overridden.\n")
		return
	}
	s.Printf("The changes are refused unless they are made with --override.\n")
}

func checkCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say of every assertion whether it holds.",
		Long: "Say of every assertion whether it holds and who breaks it, and end with exit code 8 if one does\n" +
			"not. Assertions are records: netkeep create assertion, or files. A change that would break one\n" +
			"is refused unless it is made with --override.",
		Example: "  netkeep check\n  netkeep check --junit report.xml",
		Args:    Exactly(0),
	}
	junit := cmd.Flags().String("junit", "", "File to write a report in the format of JUnit to, a test case for each assertion.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		var all checked
		if err := s.Get(cmd.Context(), "/assertions/check", nil, &all); err != nil {
			return err
		}
		if *junit != "" {
			if err := all.save(*junit); err != nil {
				return err
			}
		}
		if *output != formText {
			if err := s.value(*output, all); err != nil {
				return err
			}
		} else if err := s.tellFindings(all); err != nil {
			return err
		}
		if all.Broken > 0 {
			return errBroken
		}
		return nil
	})
	return cmd
}

// tellFindings says which assertions hold.
func (s *session) tellFindings(all checked) error {
	if len(all.Assertions) == 0 {
		s.Printf("There are no assertions; make one with: netkeep create assertion NAME --expect never --identity-roles '#contractors' --service-roles '#finance'\n")
		return nil
	}
	t := screen.Table{Heads: []string{"", "assertion", "why"}}
	for _, f := range all.Assertions {
		t.Rows = append(t.Rows, []string{f.verdict(), f.Name, f.why()})
	}
	t.Paint = func(row, column int, text string) string {
		switch f := all.Assertions[row]; {
		case column != 0:
			return text
		case !f.Holds:
			return s.Bad(text)
		case f.Idle:
			return s.Odd(text)
		}
		return s.Good(text)
	}
	return s.Write(t)
}

func (f finding) verdict() string {
	if f.Holds {
		return "holds"
	}
	return "broken"
}

func (f finding) why() string {
	if f.Idle {
		return "there is nobody, or no service, that it is about"
	}
	return f.What
}

// What JUnit calls a run of tests.
type (
	suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
)

// save writes the report for pipelines.
func (all checked) save(file string) error {
	out := suite{Name: "assertions", Tests: len(all.Assertions), Failures: all.Broken}
	for _, f := range all.Assertions {
		c := testCase{Name: f.Name, Class: "assertions"}
		if !f.Holds {
			c.Failure = &failure{f.What, "assertion"}
		}
		out.Cases = append(out.Cases, c)
	}
	data, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}
