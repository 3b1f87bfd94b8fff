package findings

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
)

// Secrets is the service group "secrets".
type Secrets struct {
	findingsv1.UnimplementedSecretsServiceServer
	store *store.Store
	rules *parsedRules
}

// NewSecrets serves secrets from the store.
func NewSecrets(st *store.Store) *Secrets { return &Secrets{store: st, rules: newParsedRules()} }

// maxSecrets is the largest page of secrets.
const maxSecrets = 500

// ListSecrets lists each secret once: the newest finding of its identity on any ref (contract facts section 4).
func (s *Secrets) ListSecrets(ctx context.Context, r *findingsv1.ListSecretsRequest) (*findingsv1.ListSecretsResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("secrets"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	where, err := s.predicates(ctx, r)
	if where == nil {
		return &findingsv1.ListSecretsResponse{}, err
	}
	where = append(where, list.LatestOfIdentity(where))
	limit := min(cmp.Or(int(r.GetLimit()), list.DefaultSize), maxSecrets)
	response := &findingsv1.ListSecretsResponse{}
	rest := where
	if continued {
		if response.Previous, err = s.previous(ctx, where, digest, key, limit); err != nil {
			return nil, err
		}
		rest = append(rest, list.After(key.Order, key.ID))
	}
	rows, err := s.store.Reader.Finding.Query().Where(rest...).Order(list.NewestFirst).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		response.Cursor = page.Encode(digest, page.Key{Order: last.RelevantSince, ID: last.ID})
	}
	response.Findings, err = s.convert(ctx, rows)
	return response, err
}

// beforeAll is a key before all findings.
var beforeAll = page.Key{Order: math.MaxInt64, ID: math.MaxInt64}

// previous returns the cursor of the page before the page after key, or "" if there is none. For the first page it
// returns beforeAll, because "" would mean that there is no previous page.
func (s *Secrets) previous(ctx context.Context, where []predicate.Finding, digest page.Digest, key page.Key, limit int) (string, error) {
	before := func(sel *entsql.Selector) {
		sel.Where(entsql.Not(entsql.CompositeLT([]string{sel.C(finding.FieldRelevantSince), sel.C(finding.FieldID)}, key.Order, key.ID)))
	}
	rows, err := s.store.Reader.Finding.Query().Where(where...).Where(before).
		Order(ent.Asc(finding.FieldRelevantSince, finding.FieldID)).Limit(limit+1).
		Select(finding.FieldID, finding.FieldRelevantSince).All(ctx)
	switch {
	case err != nil || len(rows) == 0:
		return "", err
	case len(rows) <= limit:
		return page.Encode(digest, beforeAll), nil
	}
	last := rows[limit]
	return page.Encode(digest, page.Key{Order: last.RelevantSince, ID: last.ID}), nil
}

// predicates returns the conditions of a request, or nil if it selects nothing.
func (s *Secrets) predicates(ctx context.Context, r *findingsv1.ListSecretsRequest) ([]predicate.Finding, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	f := &list.Filter{
		DeploymentID: deploymentID, IssueType: vocabulary.Secrets, Repos: r.GetRepo(), IncludeHistorical: true,
	}
	for _, v := range r.GetValidationState() {
		if v != findingsv1.ValidationState_VALIDATION_STATE_UNSPECIFIED {
			f.ValidationStates = append(f.ValidationStates, word("VALIDATION_STATE_", v.String()))
		}
	}
	for _, v := range r.GetSeverity() {
		if v != findingsv1.Severity_SEVERITY_UNSPECIFIED {
			f.Severities = append(f.Severities, word("SEVERITY_", v.String()))
		}
	}
	wanted := slices.DeleteFunc(slices.Clone(r.GetStatus()), func(v findingsv1.FindingStatus) bool {
		return v == findingsv1.FindingStatus_FINDING_STATUS_UNSPECIFIED
	})
	for status, shown := range secretStatuses {
		if slices.Contains(wanted, shown) {
			f.Statuses = append(f.Statuses, status)
		}
	}
	if len(wanted) > 0 && len(f.Statuses) == 0 { // no secret has the status
		return nil, nil
	}
	if err := f.SplitNames(ctx, s.store.Reader, f.IssueType); err != nil {
		return nil, err
	}
	where, err := f.Predicates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	if r.GetSince().GetSeconds() > 0 {
		where = append(where, finding.CreatedAtGTE(store.Micros(r.GetSince().AsTime())))
	}
	return where, nil
}

func (s *Secrets) convert(ctx context.Context, rows []*ent.Finding) ([]*findingsv1.SecretsFinding, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	about, err := readCatalog(ctx, s.store.Reader, s.rules, rows)
	if err != nil {
		return nil, err
	}
	secrets := make([]*findingsv1.SecretsFinding, len(rows))
	for i, row := range rows {
		if secrets[i], err = convertSecret(row, about); err != nil {
			return nil, err
		}
	}
	return secrets, nil
}

func convertSecret(row *ent.Finding, about *catalog) (*findingsv1.SecretsFinding, error) {
	content, err := blob.Decode(row.Content)
	if err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	rule, repo, location := about.rules[row.RuleID], about.projects[row.ProjectID], content.GetLocation()
	out := &findingsv1.SecretsFinding{
		Id:             row.ID,
		Type:           cmp.Or(rule.GetSecretType(), rule.GetName()),
		FindingPath:    cmp.Or(fileAndLine(location), content.GetLogicalLocation()),
		FindingPathUrl: codehost.LineURL(repo.ScmType, repo.URL, content.GetCommit(), location.GetFilePath(), location.GetLine()),
		Ref:            row.Ref,
		RefUrl:         codehost.RefURL(repo.ScmType, repo.URL, row.Ref),
		Repository: &findingsv1.SecretsFindingRepository{
			Name: repo.Name, Url: repo.URL, ScmType: findingsv1.ScmType(findingsv1.ScmType_value[repo.ScmType]),
			Visibility: findingsv1.RepositoryVisibility(enumOf(findingsv1.RepositoryVisibility_value, "REPOSITORY_VISIBILITY_", repo.Visibility)),
		},
		Severity:        findingsv1.Severity(enumOf(findingsv1.Severity_value, "SEVERITY_", row.Severity)),
		Confidence:      findingsv1.Confidence(enumOf(findingsv1.Confidence_value, "CONFIDENCE_", rule.GetConfidence())),
		Status:          secretStatuses[row.Status],
		ValidationState: findingsv1.ValidationState(enumOf(findingsv1.ValidationState_value, "VALIDATION_STATE_", value(row.ValidationState))),
		Mode:            modeOf(value(row.PolicyMode)),
		RuleHashId:      strconv.FormatInt(row.RuleID, 10),
		CreatedAt:       timestamp(row.CreatedAt),
		UpdatedAt:       timestamp(max(row.StateUpdatedAt, optional(row.TriagedAt))),
	}
	if content.GetHistoricalCommit() != "" {
		out.HistoricalInfo = &findingsv1.HistoricalInfo{
			GitCommit: content.GetHistoricalCommit(), GitBlob: content.GetHistoricalBlob(), GitCommitTimestamp: content.GetHistoricalCommitAt(),
		}
	}
	for _, c := range content.GetReviewComments() {
		out.ReviewComments = append(out.ReviewComments, &findingsv1.SecretsReviewComment{
			ExternalDiscussionId: c.GetExternalDiscussionId(), ExternalNoteId: strconv.FormatInt(c.GetExternalNoteId(), 10),
		})
	}
	if t := content.GetExternalTicket(); t != nil {
		out.ExternalTicket = &findingsv1.SecretsExternalTicket{ExternalSlug: t.GetExternalSlug(), Id: t.GetId(), LinkedIssueIds: t.GetLinkedIssueIds(), Url: t.GetUrl()}
	}
	return out, nil
}

// fileAndLine returns "src/app.py:12". An unknown line is left out; an unknown file results in "".
func fileAndLine(location *findingsv1.FindingLocation) string {
	if location.GetFilePath() == "" || location.GetLine() == 0 {
		return location.GetFilePath()
	}
	return location.GetFilePath() + ":" + strconv.Itoa(int(location.GetLine()))
}

// secretStatuses are the statuses as the list of secrets shows them.
var secretStatuses = map[string]findingsv1.FindingStatus{
	lifecycle.Open:                 findingsv1.FindingStatus_FINDING_STATUS_OPEN,
	lifecycle.Reviewing:            findingsv1.FindingStatus_FINDING_STATUS_OPEN,
	lifecycle.Fixing:               findingsv1.FindingStatus_FINDING_STATUS_OPEN,
	lifecycle.Ignored:              findingsv1.FindingStatus_FINDING_STATUS_IGNORED,
	lifecycle.ProvisionallyIgnored: findingsv1.FindingStatus_FINDING_STATUS_PROVISIONALLY_IGNORED,
	lifecycle.Fixed:                findingsv1.FindingStatus_FINDING_STATUS_FIXED,
	lifecycle.Removed:              findingsv1.FindingStatus_FINDING_STATUS_REMOVED,
}

func modeOf(policy string) findingsv1.Mode {
	switch policy {
	case "rule-board-block":
		return findingsv1.Mode_MODE_BLOCK
	case "rule-board-pr-comments":
		return findingsv1.Mode_MODE_COMMENT
	}
	return findingsv1.Mode_MODE_MONITOR
}

// word returns the lower-case word of an enum value.
func word(prefix, name string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

// enumOf returns the enum value of a lower-case word.
func enumOf(values map[string]int32, prefix, w string) int32 {
	return values[prefix+strings.ToUpper(w)]
}

func optional(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
