package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/findingmatch"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/sarif"
)

// RedactionKey is the name of the stored key of the hashes that replace secrets.
const RedactionKey = "redaction_key"

// Recast gives findings of one deployment another product. Their columns and contents become what an upload with that
// product stores, as far as the old contents tell; the next upload fills in the rest. Findings that become secrets are
// redacted, also in what is kept of former matches. The caller writes the rows.
func Recast(ctx context.Context, st *store.Store, tx *ent.Tx, rows []*ent.Finding, product string, redactionKey []byte) error {
	if len(rows) == 0 {
		return nil
	}
	names, err := currentNames(ctx, tx, rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := recast(row, product, names[row.ID], redactionKey); err != nil {
			return fmt.Errorf("finding %d: %w", row.ID, err)
		}
	}
	switch product {
	case vocabulary.SCA:
		return predict(ctx, tx, rows)
	case vocabulary.Secrets:
		return redactMatches(ctx, st, tx, rows, names, redactionKey)
	}
	return nil
}

// currentNames returns the current name of the rule of each finding.
func currentNames(ctx context.Context, tx *ent.Tx, rows []*ent.Finding) (map[int64]string, error) {
	var rules []int64
	for _, row := range rows {
		rules = append(rules, row.RuleID)
	}
	slices.Sort(rules)
	stored, err := ruleNamesOf(ctx, tx, slices.Compact(rules))
	if err != nil {
		return nil, err
	}
	present, err := presentNames(ctx, tx, rows[0].DeploymentID, rows, stored)
	names := make(map[int64]string, len(rows))
	for _, row := range rows {
		names[row.ID] = stored[row.RuleID]
		if now, renamed := present[ruleKey{row.Tool, names[row.ID]}]; renamed {
			names[row.ID] = now
		}
	}
	return names, err
}

func recast(row *ent.Finding, product, rule string, redactionKey []byte) error {
	content, err := blob.Decode(row.Content)
	if err != nil {
		return err
	}
	row.IssueType = product
	row.Exposure, row.Transitivity, row.Package, row.Advisory, row.EpssProbability, row.Malicious = nil, nil, nil, nil, nil, nil
	row.ValidationState, row.Historical = nil, nil
	switch product {
	case vocabulary.SCA:
		recastDependency(row, content, rule)
	case vocabulary.Secrets:
		row.ValidationState = new(NoValidator)
		if content.GetHistoricalCommit() != "" {
			row.Historical = new(true)
		}
		if !sarif.IsRedacted(content.GetSnippet()) {
			redactContent(content, redactionKey)
			evidence := identity.EvidenceOf(identityText(rule, content))
			row.Evidence, row.MatchKey = new(evidence.Encode()), new(evidence.Key())
		}
	}
	if row.Content, err = blob.Encode(content); err != nil {
		return err
	}
	row.ContentHash, err = ContentHash(&Result{
		Product: product, Severity: row.Severity, Content: content, Exposure: derefOrEmpty(row.Exposure),
		ValidationState: derefOrEmpty(row.ValidationState), PolicyMode: derefOrEmpty(row.PolicyMode),
	}, row.RuleID)
	return err
}

// recastDependency sets what the list of dependencies filters. The content of a finding that was of another product
// names no package.
func recastDependency(row *ent.Finding, content *storev1.FindingContent, rule string) {
	if content.GetFoundDependency() == nil {
		content.FoundDependency = &findingsv1.FoundDependency{Ecosystem: "no_package_manager", Transitivity: "unknown"}
	}
	if content.GetVulnerabilityIdentifier() == "" {
		content.VulnerabilityIdentifier = rule
	}
	found, advisory := content.GetFoundDependency(), strings.ToUpper(content.GetVulnerabilityIdentifier())
	row.Exposure, row.Transitivity, row.Advisory = new(UnknownExposure), new(found.GetTransitivity()), &advisory
	if found.GetPackage() != "" {
		row.Package = new(found.GetPackage())
	}
}

// predict sets the exploit predictions of dependencies.
func predict(ctx context.Context, tx *ent.Tx, rows []*ent.Finding) error {
	advisories := make([]string, len(rows))
	for n, row := range rows {
		advisories[n] = derefOrEmpty(row.Advisory)
	}
	exploits, err := exploit.Read(ctx, tx.Client(), advisories)
	for n, row := range rows {
		row.EpssProbability = new(exploits.Probability(advisories[n]))
	}
	return err
}

// redactContent hides the code of a finding, and removes the secret from its texts, as an upload of secrets does.
func redactContent(content *storev1.FindingContent, key []byte) {
	r := sarif.RedactorOf(key, content.GetSnippet(), content.GetMessage(), content.GetLocation().GetFilePath())
	content.Snippet, content.Message = r.Code(content.GetSnippet()), r.Text(content.GetMessage())
	content.LogicalLocation, content.SuppressionReason = r.Text(content.GetLogicalLocation()), r.Text(content.GetSuppressionReason())
	content.FixedLines, content.DataflowTrace, content.Metadata = nil, nil, nil
	for _, id := range []*string{
		&content.SyntacticId, &content.MatchBasedId, &content.ToolFingerprint, &content.PatternHash, &content.CodeHash,
	} {
		if r.Leaks(*id) {
			*id = ""
		}
	}
	content.Fingerprints = slices.DeleteFunc(content.Fingerprints, r.Leaks)
	if content.Suppression != nil {
		eachText(content.Suppression.ProtoReflect(), r.Text)
	}
	if content.Assistant != nil {
		eachText(content.Assistant.ProtoReflect(), r.Text)
	}
	content.Context = redactContext(content.GetContext(), r)
}

// redactContext leaves the places of flows, without their code.
func redactContext(encoded []byte, r sarif.Redactor) []byte {
	around := &findingsv1.FindingContext{}
	if len(encoded) == 0 || proto.Unmarshal(encoded, around) != nil {
		return nil
	}
	around.Fixes = nil
	for _, flow := range around.GetCodeFlows() {
		for _, thread := range flow.GetThreadFlows() {
			for _, step := range thread.GetSteps() {
				step.Snippet = ""
			}
		}
	}
	eachText(around.ProtoReflect(), r.Text)
	encoded, _ = proto.MarshalOptions{Deterministic: true}.Marshal(around) // valid UTF-8: it never fails
	return encoded
}

// eachText changes the texts of a message, except paths.
func eachText(m protoreflect.Message, change func(string) string) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		isText, isMessage := field.Kind() == protoreflect.StringKind, field.Kind() == protoreflect.MessageKind
		switch {
		case field.Name() == "path":
		case field.IsList():
			for n := range value.List().Len() {
				if one := value.List().Get(n); isText {
					value.List().Set(n, protoreflect.ValueOfString(change(one.String())))
				} else if isMessage {
					eachText(one.Message(), change)
				}
			}
		case isText:
			m.Set(field, protoreflect.ValueOfString(change(value.String())))
		case isMessage:
			eachText(value.Message(), change)
		}
		return true
	})
}

// redactMatches redacts the former contents of findings that a split would restore.
func redactMatches(ctx context.Context, st *store.Store, tx *ent.Tx, rows []*ent.Finding, names map[int64]string, key []byte) error {
	ids := make([]int64, len(rows))
	for n, row := range rows {
		ids[n] = row.ID
	}
	matches, err := tx.FindingMatch.Query().Where(findingmatch.DeploymentID(rows[0].DeploymentID), store.OneOf(findingmatch.FieldFindingID, ids)).
		Select(findingmatch.FieldID, findingmatch.FieldFindingID, findingmatch.FieldContent).All(ctx)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(matches, upgradeRows) {
		var values []string
		var args []any
		for _, row := range part {
			encoded, err := redactMatch(row.Content, names[row.FindingID], key)
			if err != nil {
				return fmt.Errorf("match %d: %w", row.ID, err)
			}
			if encoded == nil {
				continue
			}
			value := "(?, ?)"
			if len(values) == 0 && st.Postgres() {
				value = "(CAST(? AS bigint), CAST(? AS bytea))"
			}
			values, args = append(values, value), append(args, row.ID, encoded)
		}
		if len(values) == 0 {
			continue
		}
		err := st.Exec(ctx, tx, "UPDATE finding_matches SET content = fresh.column2 FROM (VALUES "+strings.Join(values, ", ")+
			") AS fresh WHERE finding_matches.id = fresh.column1 AND +finding_matches.deployment_id = ?", append(args, rows[0].DeploymentID)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// redactMatch returns a match with a redacted former content, or nil if it has none.
func redactMatch(stored []byte, rule string, key []byte) ([]byte, error) {
	match := &storev1.FindingMatch{}
	if err := proto.Unmarshal(stored, match); err != nil || len(match.GetContentBefore()) == 0 {
		return nil, err
	}
	content, err := blob.Decode(match.GetContentBefore())
	if err != nil || sarif.IsRedacted(content.GetSnippet()) {
		return nil, err
	}
	redactContent(content, key)
	if match.ContentBefore, err = blob.Encode(content); err != nil {
		return nil, err
	}
	evidence := identity.EvidenceOf(identityText(rule, content))
	match.EvidenceBefore = evidence.Encode()
	return proto.MarshalOptions{Deterministic: true}.Marshal(match)
}
