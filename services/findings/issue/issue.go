package issue

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
)

const (
	monitored = "rule-board-audit"
	blocking  = "rule-board-block"
)

// issue converts one row.
func (a *relatedRows) issue(row *ent.Finding) (*findingsv1.Issue, error) {
	content, err := blob.Decode(row.Content)
	if err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	owner, at := a.projects[row.ProjectID], content.GetLocation()
	out := &findingsv1.Issue{
		Id: row.ID, Ref: row.Ref, SyntacticId: content.GetSyntacticId(), MatchBasedId: content.GetMatchBasedId(),
		RuleId: row.RuleID, CreatedAt: timestamp(row.CreatedAt), RelevantSince: timestamp(row.RelevantSince),
		Status:           enumOf[findingsv1.IssueStatus](findingsv1.IssueStatus_value, "ISSUE_STATUS_", row.State),
		TriageState:      enumOf[findingsv1.FindingTriageState](findingsv1.FindingTriageState_value, "FINDING_TRIAGE_STATE_", row.TriageState),
		AggregateState:   aggregate(row),
		Severity:         enumOf[findingsv1.Severity](findingsv1.Severity_value, "SEVERITY_", row.Severity),
		IssueType:        enumOf[findingsv1.IssueType](findingsv1.IssueType_value, "ISSUE_TYPE_", row.IssueType),
		Repository:       repository(owner),
		FirstSeenScan:    &findingsv1.IssueScan{Id: row.FirstSeenScanID, Meta: a.scans[row.FirstSeenScanID]},
		ActivityHistory:  a.history[row.ID],
		TicketAttempts:   a.attempts[row.ID],
		PolicySlug:       monitored,
		LineOfCodeUrl:    codehost.LineURL(owner.ScmType, owner.URL, content.GetCommit(), at.GetFilePath(), at.GetLine()),
		CommitUrl:        codehost.CommitURL(owner.ScmType, owner.URL, content.GetCommit()),
		RefUrl:           codehost.RefURL(owner.ScmType, owner.URL, row.Ref),
		FilePath:         cmp.Or(at.GetFilePath(), content.GetLogicalLocation()),
		LogicalLocation:  content.GetLogicalLocation(),
		Line:             at.GetLine(),
		EndLine:          at.GetEndLine(),
		Column:           at.GetColumn(),
		EndColumn:        at.GetEndColumn(),
		Message:          cmp.Or(content.GetMessage(), a.rules[row.RuleID].GetMessage()),
		AiImpact:         content.GetAiImpact(),
		IsArchived:       new(owner.ArchivedAt != nil),
		TriagePermission: a.triagePermission(row),
	}
	if last := a.lastSeen[row.ID]; last != 0 {
		out.LastSeenScan = &findingsv1.IssueScan{Id: last, Meta: a.scans[last]}
	}
	if row.TriageReason != nil {
		out.TriageReason = enumOf[findingsv1.FindingTriageReason](findingsv1.FindingTriageReason_value, "FINDING_TRIAGE_REASON_", *row.TriageReason)
	}
	if row.TriageComment != nil {
		out.Note = *row.TriageComment
	}
	if row.PolicyMode != nil {
		out.PolicySlug = *row.PolicyMode
	}
	out.IsBlocking = out.GetPolicySlug() == blocking
	a.addRule(out, row)
	a.addSiblings(out, row)
	a.addAssistance(out, row, content)
	a.addAttributes(out, row, content)
	addLinks(out, content)
	out.ExceptionRequest = a.exceptionRequest(row)
	if a.alone {
		out.IdentityUrl = fmt.Sprintf("/api/v1/deployments/%d/findings/%d/identity", row.DeploymentID, row.ID)
	}
	return out, a.addCode(out, row, content)
}

// triagePermission is what the caller's role and teams allow, and the deployment's setting if the caller is a
// developer. It is unspecified without a caller.
func (a *relatedRows) triagePermission(row *ent.Finding) findingsv1.TriagePermission {
	switch {
	case a.readOnly[row.ProjectID]:
		return findingsv1.TriagePermission_TRIAGE_PERMISSION_NONE
	case a.canTriage != findingsv1.TriagePermission_TRIAGE_PERMISSION_IGNORE || a.developer == nil:
		return a.canTriage
	}
	return findingsv1.TriagePermission(a.developer.Of(row.IssueType))
}

// rolePermission is what the caller's role allows.
func rolePermission(ctx context.Context) findingsv1.TriagePermission {
	p, called := access.FromContext(ctx)
	grant, in := access.GrantFromContext(ctx)
	if !called || !in {
		return findingsv1.TriagePermission_TRIAGE_PERMISSION_UNSPECIFIED
	}
	rule := &optionsv1.MethodRule{Permission: optionsv1.Permission_PERMISSION_TRIAGE, Schemes: []optionsv1.Scheme{p.Scheme}}
	if access.Authorize(rule, p, grant) != nil {
		return findingsv1.TriagePermission_TRIAGE_PERMISSION_NONE
	}
	return findingsv1.TriagePermission_TRIAGE_PERMISSION_IGNORE
}

func repository(owner *ent.Project) *findingsv1.IssueRepository {
	out := &findingsv1.IssueRepository{Name: owner.Name, Id: owner.ID, Type: findingsv1.ScmType(findingsv1.ScmType_value[owner.ScmType])}
	primary := owner.PrimaryBranch
	if primary == "" {
		primary = owner.DefaultBranch
	}
	if primary != "" {
		out.PrimaryRef = &findingsv1.IssueRef{Id: issuefilter.RefID(owner.ID, primary), Ref: primary}
	}
	return out
}

// aggregate is the aggregate state of a finding. The filter aggregateIssueStates uses the same definition.
func aggregate(row *ent.Finding) findingsv1.AggregateIssueState {
	word := row.Status
	switch {
	case word == lifecycle.Ignored && row.TriageState == lifecycle.Ignored:
		word = "ignored_app"
	case word == lifecycle.Ignored:
		word = "ignored_code"
	case word == lifecycle.ProvisionallyIgnored:
		word = "provisionally_ignored_app"
	}
	return enumOf[findingsv1.AggregateIssueState](findingsv1.AggregateIssueState_value, "AGGREGATE_ISSUE_STATE_", word)
}

func (a *relatedRows) addRule(out *findingsv1.Issue, row *ent.Finding) {
	about := a.rules[row.RuleID]
	out.RulePath, out.Category = about.GetName(), about.GetCategory()
	out.RuleDisplayName = about.GetName()[strings.LastIndex(about.GetName(), ".")+1:]
	out.RuleHashId = strconv.FormatInt(row.RuleID, 10) // as secrets show it
	out.RuleOrigin = enumOf[findingsv1.RuleOrigin](findingsv1.RuleOrigin_value, "RULE_ORIGIN_", a.origins[row.RuleID])
	out.RuleUrl, out.RuleReferences = about.GetHelpUri(), about.GetReferences()
	out.Confidence = enumOf[findingsv1.Confidence](findingsv1.Confidence_value, "CONFIDENCE_", about.GetConfidence())
	out.RuleCweNames, out.RuleOwaspNames, out.Subcategories = about.GetCweNames(), about.GetOwaspNames(), about.GetSubcategories()
}

// pullRequest matches the number in the ref of a pull request of any host.
var pullRequest = regexp.MustCompile(`^refs/(?:pull|pull-requests|merge-requests)/([0-9]+)/`)

// addSiblings adds the findings of the same identity on other refs.
func (a *relatedRows) addSiblings(out *findingsv1.Issue, row *ent.Finding) {
	out.IssueParentId, out.FirstDetectedAt = row.ID, timestamp(row.CreatedAt)
	first := row.CreatedAt
	for n, sibling := range a.siblings[identityOf(row)] {
		if n == 0 {
			out.IssueParentId = sibling.ID
		}
		if sibling.CreatedAt < first {
			first, out.FirstDetectedAt = sibling.CreatedAt, timestamp(sibling.CreatedAt)
		}
		if sibling.ID == row.ID {
			continue
		}
		related := &findingsv1.IssueRelatedIssue{Id: sibling.ID, Ref: sibling.Ref, AggregateState: aggregate(sibling), CreatedAt: timestamp(sibling.CreatedAt)}
		if match := pullRequest.FindStringSubmatch(sibling.Ref); match != nil {
			related.PullRequestId = match[1]
		}
		out.RelatedIssues = append(out.RelatedIssues, related)
	}
}

// addLinks adds links to other systems.
func addLinks(out *findingsv1.Issue, content *storev1.FindingContent) {
	if t := content.GetExternalTicket(); t != nil {
		out.ExternalTicket = &findingsv1.SecretsExternalTicket{ExternalSlug: t.GetExternalSlug(), Id: t.GetId(), LinkedIssueIds: t.GetLinkedIssueIds(), Url: t.GetUrl()}
	}
	if prs := content.GetClickToFixPrs(); len(prs) > 0 {
		out.ClickToFixPrUrl = prs[len(prs)-1].GetUrl()
		number := out.GetClickToFixPrUrl()[strings.LastIndex(out.GetClickToFixPrUrl(), "/")+1:]
		if _, err := strconv.ParseUint(number, 10, 64); err == nil {
			out.ClickToFixPrId = number
		}
	}
}

// enumOf is the enum value for a column's value. It is zero, which is never shown, for unknown values.
func enumOf[E ~int32](values map[string]int32, prefix, word string) E {
	return E(values[prefix+strings.ToUpper(word)])
}

func timestamp(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }

func text(id int64) string { return strconv.FormatInt(id, 10) }
