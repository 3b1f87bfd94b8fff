package sbom

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// read reads the packages, and then the vulnerabilities.
func (r *run) read(ctx context.Context) error {
	for last := int64(0); ; {
		in, err := r.asCaller(ctx)
		if err != nil {
			return err
		}
		rows, err := r.store.Reader.Dependency.Query().Where(dependency.ProjectID(r.project.ID), dependency.IDGT(last)).
			Order(ent.Asc(dependency.FieldID)).Limit(rowsAtOnce).All(in)
		if err != nil {
			return fmt.Errorf("read dependencies: %w", err)
		}
		for _, row := range rows {
			content := &storev1.DependencyContent{}
			if err := proto.Unmarshal(row.Content, content); err != nil {
				return fmt.Errorf("content of dependency %d: %w", row.ID, err)
			}
			if err := r.parts.add(row, content); err != nil {
				return err
			}
		}
		if len(rows) < rowsAtOnce {
			return r.readVulnerabilities(ctx)
		}
		last = rows[len(rows)-1].ID
	}
}

// readVulnerabilities reads what the latest scans of the primary branch reported about packages.
func (r *run) readVulnerabilities(ctx context.Context) error {
	for last, count := int64(0), 0; ; {
		in, err := r.asCaller(ctx)
		if err != nil {
			return err
		}
		where := []predicate.Finding{
			finding.ProjectID(r.project.ID), finding.IssueType(vocabulary.SCA), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted),
			finding.PackageNotNil(), finding.IDGT(last),
		}
		if ref := primaryRef(r.project); ref != "" {
			where = append(where, finding.Ref(ref))
		} else if r.request.GetRef() != "" {
			where = append(where, finding.Ref(gitref.Full(r.request.GetRef())))
		}
		rows, err := r.store.Reader.Finding.Query().Where(where...).Order(ent.Asc(finding.FieldID)).Limit(rowsAtOnce).All(in)
		if err != nil {
			return fmt.Errorf("read findings: %w", err)
		}
		if count += len(rows); count > maxVulnerable {
			return apierr.FailedPrecondition("the SBOM has more than %d vulnerabilities", maxVulnerable)
		}
		if err := r.addVulnerabilities(in, rows); err != nil {
			return err
		}
		if len(rows) < rowsAtOnce {
			return nil
		}
		last = rows[len(rows)-1].ID
	}
}

// addVulnerabilities adds findings with their rules.
func (r *run) addVulnerabilities(ctx context.Context, rows []*ent.Finding) error {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.RuleID
	}
	list, err := r.store.Reader.Rule.Query().Where(store.WithIDs[predicate.Rule](ids)).All(ctx)
	if err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	rules := make(map[int64]*ent.Rule, len(list))
	for _, rule := range list {
		rules[rule.ID] = rule
	}
	for _, row := range rows {
		rule := rules[row.RuleID]
		if rule == nil {
			continue // deleted since
		}
		about := &findingsv1.FindingRule{}
		if err := proto.Unmarshal(rule.Content, about); err != nil {
			return fmt.Errorf("rule %d: %w", rule.ID, err)
		}
		content, err := blob.Decode(row.Content)
		if err != nil {
			return fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		if err := r.parts.addVulnerability(row, content, rule.Name, about); err != nil {
			return err
		}
	}
	return nil
}
