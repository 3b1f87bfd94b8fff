package scans

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/rulealias"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// decidedRules returns the rules in mode block that the scanner must not decide about: those with ignored findings in
// the project. The scanner recognises ignored findings by ids that depend on the path of the file, so it would block
// one whose file was renamed. The server recognises it, and answers at the end of the scan.
func (s *ScannerProtocol) decidedRules(ctx context.Context, projectName string) ([]string, error) {
	of, err := s.scanned(ctx, projectName)
	if err != nil || of.Project == nil {
		return nil, err
	}
	rows, err := s.ignoredFindings(of).Select(finding.FieldRuleID).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, f := range rows {
		ids[i] = f.RuleID
	}
	slices.Sort(ids)
	present, err := s.store.Reader.Rule.Query().Where(rule.Tool(scannerTool), store.WithIDs[predicate.Rule](slices.Compact(ids))).
		Select(rule.FieldName).Strings(ctx)
	if err != nil {
		return nil, err
	}
	former, err := s.store.Reader.RuleAlias.Query().Where(rulealias.Tool(scannerTool), store.OneOf(rulealias.FieldCanonical, present)).
		Select(rulealias.FieldName).Strings(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(present)+len(former))
	for _, name := range slices.Concat(present, former) {
		names[name] = true
	}
	return ruleset.Decidable(ctx, s.store.Reader, names, ruleset.Selection{Project: projectName, BaseURL: s.baseURL})
}
