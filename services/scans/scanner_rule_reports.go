package scans

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/project"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	message "github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/scans/scanner"
)

// maxErrorOutput is how much of a scanner's output is searched for rules, in bytes.
const maxErrorOutput = 256 << 10

// judgeCompletion draws conclusions about rules from the end of a scan: rules that it calls broken are quarantined, and
// rules that it ran are proven. It is idempotent, and runs before the completion is stored, so that a retry of the
// scanner makes up for a crash.
func (s *ScannerProtocol) judgeCompletion(ctx context.Context, row *ent.Scan, kept *storev1.ScannerScan, end *completion) error {
	// A scan that ran its rules exits with 0 or 1 (scan protocol, section 7).
	works := row.ResultsState != "" && end.ExitCode >= 0 && end.ExitCode <= 1 && len(kept.GetProducts()) > 0
	var unproven map[string]int64
	if works {
		var err error
		if unproven, err = ruleset.Unproven(ctx, s.store.Reader, kept.GetProducts(), row.StartedAt); err != nil {
			return err
		}
	}
	if len(unproven) == 0 && len(end.RuleErrors) == 0 {
		return nil
	}
	sent, err := s.sentTo(ctx, row, kept)
	if err != nil {
		return err
	}
	if err := s.quarantine(ctx, row, sent, end.RuleErrors, end.ExitCode); err != nil {
		return err
	}
	broken := map[string]bool{}
	for _, e := range end.RuleErrors {
		broken[e.Rule] = true
	}
	var proven []int64
	for name, id := range unproven {
		if _, got := sent[name]; got && !broken[name] {
			proven = append(proven, id)
		}
	}
	if len(proven) == 0 {
		return nil
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return ruleset.Prove(ctx, tx, proven, row.StartedAt)
	})
}

// judgeError quarantines the rules that a failed scan calls broken, and raises an alert if all scans fail.
func (s *ScannerProtocol) judgeError(ctx context.Context, row *ent.Scan, exitCode int32, output string) error {
	if output != "" {
		kept, err := scannerOf(row)
		if err != nil {
			return err
		}
		sent, err := s.sentTo(ctx, row, kept)
		if err != nil {
			return err
		}
		isSent := func(name string) bool { _, ok := sent[name]; return ok }
		named := scanner.RuleErrorsIn(output[:min(len(output), maxErrorOutput)], isSent)
		if err := s.quarantine(ctx, row, sent, named, exitCode); err != nil {
			return err
		}
	}
	failing, err := ruleset.ScansFailing(ctx, s.store.Reader)
	if err != nil || failing == nil {
		return err
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return s.alert(ctx, tx, row, fmt.Sprintf("failing/%d", failing.Since),
			message.RuleAlert{FailingSince: store.Time(failing.Since), ExitCode: exitCode})
	})
}

// sentTo returns the rules that a scan got, if they have not changed.
func (s *ScannerProtocol) sentTo(ctx context.Context, row *ent.Scan, kept *storev1.ScannerScan) (map[string]ruleset.Sent, error) {
	return ruleset.SentTo(ctx, s.store.Reader, ruleset.Selection{
		Products: kept.GetProducts(), PartialRuleIDs: partialRules(row), ClientVersion: kept.GetCliVersion(), Project: kept.GetRepository(),
		BaseURL: s.baseURL,
	})
}

// quarantine quarantines the rules that a scan got and calls broken. Versions from after its start are not judged,
// because the scan may have got the version before.
func (s *ScannerProtocol) quarantine(ctx context.Context, row *ent.Scan, sent map[string]ruleset.Sent, named []scanner.RuleError, exitCode int32) error {
	var broken []ruleset.Broken
	seen := map[string]bool{}
	for _, e := range named {
		if got, ok := sent[e.Rule]; ok && got.StoredAt < row.StartedAt && !seen[e.Rule] {
			seen[e.Rule] = true
			broken = append(broken, ruleset.Broken{Name: e.Rule, Reason: e.Text, Version: got.Version})
		}
	}
	if len(broken) == 0 || len(broken) > ruleset.MaxBroken {
		return nil
	}
	if some, err := ruleset.CanQuarantine(ctx, s.store.Reader, broken); err != nil || !some {
		return err
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		changed, err := ruleset.Quarantine(ctx, s.store, tx, row.ID, broken)
		if err != nil || len(changed) == 0 {
			return err
		}
		about, cause := message.RuleAlert{ExitCode: exitCode}, "quarantine"
		for _, rule := range changed {
			about.Quarantined = append(about.Quarantined, [2]string{rule.Name, rule.Reason})
			cause += fmt.Sprintf("/%s/%d", rule.Name, rule.Version)
		}
		return s.alert(ctx, tx, row, cause, about)
	})
}

// alert sends a message about rules to the receivers that want it.
func (s *ScannerProtocol) alert(ctx context.Context, tx *ent.Tx, row *ent.Scan, cause string, about message.RuleAlert) error {
	of, err := tx.Project.Query().Where(project.ID(row.ProjectID)).Only(ctx)
	if err != nil {
		return err
	}
	owner, err := tx.Deployment.Query().Where(deployment.ID(row.DeploymentID)).Only(ctx)
	if err != nil {
		return err
	}
	about.DeploymentID, about.ProjectID, about.ScanID = row.DeploymentID, of.ID, row.ID
	about.Project, about.TenantName = of.Name, owner.Slug
	return outbox.RuleAlert(ctx, tx, s.jobs, cause, about)
}
