package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/tool/screen"
)

const (
	// localTime is how long a controller on this machine may take to say how it is.
	localTime = 10 * time.Second
	// maxHealth is how many bytes it may take to say it.
	maxHealth = 64 << 10
)

// localStatus says how the controller of a data directory is by what it tells
// monitoring: it does that also while it turns everybody else away.
func localStatus(ctx context.Context, scr *screen.Screen, data, form string) error {
	noted, err := os.ReadFile(filepath.Join(data, "monitoring"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("no controller that tells monitoring how it is has run in %s: its log says how it is; metrics.listen has it told", data)
	case err != nil:
		return fmt.Errorf("where the controller tells how it is: %w", err)
	}
	at := strings.TrimSpace(string(noted))
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/health/ready", nil)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(data, "monitoring"), err)
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		return fmt.Errorf("the controller of %s does not answer at %s: it does not run, or is not ready yet; its log says why. One that waits for other controllers which are lost for good goes on alone after netkeep cluster recover", data, at)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", at, err)
	}
	var answer struct {
		Status string  `json:"status"`
		Checks []check `json:"checks"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("what answers at %s is no controller (%w): it does not run any more", at, err)
	}
	if form != formText {
		return (&session{Screen: scr}).raw(form, raw)
	}
	out := statusScreen{Screen: scr}
	out.line("controller", "the one of %s", data)
	out.health(answer.Status, answer.Checks)
	for _, line := range out.lines {
		scr.Printf("%s\n", line)
	}
	return nil
}
