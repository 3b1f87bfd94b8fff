package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Values of skewed findings. The first values of each list are frequent: the second has half as many findings as the
// first, and so on.
const (
	skewedProjects = 300
	skewedRules    = 1000
	skewedRefs     = 400
	skewedPackages = 3000
	skewedTags     = 40
)

var (
	skewedStatuses   = []string{"open", "fixed", "ignored", "reviewing", "fixing"}
	skewedSeverities = []string{"low", "medium", "high", "critical"}
	skewedPolicies   = []string{"rule-board-pr-comments", "rule-board-block"}
	skewedVerdicts   = []string{"true_positive", "false_positive"}
	skewedFixes      = []string{"open", "merged"}
	skewedExposures  = []string{"unknown", "unreachable", "reachable", "always_reachable"}
	skewedWays       = []string{"transitive", "unknown", "direct"}
	skewedEPSS       = []string{"none", "low", "medium", "high"}
	skewedReasons    = []string{"acceptable_risk", "false_positive", "duplicate"}
	skewedChecks     = []string{"no_validator", "confirmed_invalid", "validation_error", "confirmed_valid"}
)

// skew draws Zipf-distributed numbers with an exponent of 1.1: higher numbers are rarer.
type skew struct {
	*rand.Rand
	dice map[int]*rand.Zipf
}

func newSkew(seed uint64) *skew {
	return &skew{rand.New(rand.NewPCG(seed, 27)), map[int]*rand.Zipf{}}
}

// below draws a number below n.
func (s *skew) below(n int) int {
	if s.dice[n] == nil {
		s.dice[n] = rand.NewZipf(s.Rand, 1.1, 1, uint64(n-1))
	}
	return int(s.dice[n].Uint64())
}

func (s *skew) word(list []string) string { return list[s.below(len(list))] }

// sometimes returns a value with the given probability in percent, else null.
func (s *skew) sometimes(percent float64, list []string) any {
	if s.Float64()*100 >= percent {
		return nil
	}
	return s.word(list)
}

// skewedRef returns a ref; most refs are pull requests.
func skewedRef(n int) string {
	if n < 2 {
		return "refs/heads/" + fillRefs[n]
	}
	return fmt.Sprintf("refs/pull/%d/merge", n)
}

const skewedColumns = `deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type, severity, state,
	triage_state, status, triage_reason, policy_mode, autotriage_verdict, component_tag, exposure, transitivity, package, epss_probability, malicious,
	click_to_fix_state, validation_state, historical, created_at, relevant_since, state_updated_at, content_hash, content`

// finding returns a random finding. Its columns correlate: fixed findings are mostly old, policies cover few rules, and
// half of the projects have no new findings. Statistics of single columns do not show this.
func (s *skew) finding(number, of int, content []byte) []any {
	old := number < of/2
	project, rule := s.below(skewedProjects), s.below(skewedRules)
	if !old && project%2 == 1 {
		project--
	}
	kind := []string{"sast", "sca", "secrets", "ai_sast"}[s.below(4)]
	status, state, triage := s.word(skewedStatuses), "unresolved", "untriaged"
	if !old && status == "fixed" && s.IntN(20) > 0 {
		status = "open"
	}
	var reason, exposure, way, name, epss, malicious, check, historical, policy, verdict, fix any
	switch status {
	case "fixed":
		state = "fixed"
	case "ignored", "reviewing", "fixing":
		triage = status
	}
	if status == "ignored" {
		reason = s.word(skewedReasons)
	}
	switch kind {
	case "sca":
		exposure, way, epss = s.word(skewedExposures), s.word(skewedWays), s.word(skewedEPSS)
		name = fmt.Sprintf("package-%d", s.below(skewedPackages))
		if s.IntN(2000) == 0 {
			malicious = true
		}
	case "secrets":
		check = s.word(skewedChecks)
		if s.IntN(50) == 0 {
			historical = true
		}
	default:
		verdict = s.sometimes(10, skewedVerdicts)
	}
	if rule%10 == 3 || s.IntN(50) == 0 {
		policy = s.word(skewedPolicies)
	}
	if kind == "sast" || kind == "sca" {
		fix = s.sometimes(1, skewedFixes)
	}
	var tag any
	if s.IntN(4) == 0 {
		tag = fmt.Sprintf("tag-%d", s.below(skewedTags))
	}
	seen := int64(1_700_000_000_000_000) + int64(number)*1_000_000
	return []any{
		1, project + 1, rule + 1, 0, skewedRef(s.below(skewedRefs)), "fill", "", fmt.Sprintf("%032x", number), kind, s.word(skewedSeverities), state,
		triage, status, reason, policy, verdict, tag, exposure, way, name, epss, malicious,
		fix, check, historical, seen, seen, seen, 1, content,
	}
}

// fillSkewed fills a store with tables that a server has created.
func (b *bench) fillSkewed(ctx context.Context, db *database, findings int) error {
	content, err := proto.Marshal(&storev1.FindingContent{Message: strings.Repeat("x", 297)})
	if err != nil {
		return err
	}
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1) "
	for _, statement := range []string{
		fmt.Sprintf(numbers+`INSERT INTO projects (deployment_id, name, name_key, default_branch, created_at)
			SELECT 1, 'bench/skewed-' || i, 'bench/skewed-' || i, 'refs/heads/main', 1 FROM n`, skewedProjects),
		fmt.Sprintf(numbers+`INSERT INTO rules (deployment_id, tool, name, category, confidence, content)
			SELECT 1, 'fill', 'fill.rule-' || i, 'security', CASE i %% 30 WHEN 7 THEN 'low' ELSE 'high' END, x'' FROM n`, skewedRules),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("fill projects and rules: %w", err)
		}
	}
	return db.withoutIndexes(ctx, []string{"findings"}, func() error { return insertSkewed(ctx, db, findings, content) })
}

func insertSkewed(ctx context.Context, db *database, findings int, content []byte) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	insert, err := tx.PrepareContext(ctx, "INSERT INTO findings ("+skewedColumns+") VALUES (?"+strings.Repeat(", ?", strings.Count(skewedColumns, ","))+")")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	draw := newSkew(1)
	for n := range findings {
		if _, err := insert.ExecContext(ctx, draw.finding(n, findings, content)...); err != nil {
			return fmt.Errorf("fill skewed findings: %w", err)
		}
	}
	return tx.Commit()
}

// nthPercent returns the value that the given percentage of the sorted values does not exceed.
func nthPercent(sorted []float64, percent float64) float64 {
	return sorted[int(math.Ceil(float64(len(sorted))*percent/100))-1]
}
