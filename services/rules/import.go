package rules

import (
	"context"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/rules/document"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/rules/starter"
)

const (
	// maxShownProblems keeps the error for invalid files below the size limit of gRPC trailers.
	maxShownProblems = 40
	// maxListedProblems is the maximum number of problems listed if invalid rules are skipped.
	maxListedProblems = 5000
)

// ImportRules stores rules in one transaction.
func (s *Rules) ImportRules(ctx context.Context, r *rulesv1.ImportRulesRequest) (*rulesv1.ImportRulesResponse, error) {
	rules, problems := parseFiles(r.GetFiles())
	if len(problems) > 0 && !r.GetSkipBad() {
		return nil, problemsError("files", problems)
	}
	how := ruleset.PutOptions{Origin: ruleset.OriginImport, Mode: ruleset.ModeMonitor, Visibility: ruleset.VisibilityOrgPrivate}
	if r.GetMode() != rulesv1.RuleMode_RULE_MODE_UNSPECIFIED {
		how.Mode = ruleset.Modes[r.GetMode()]
	}
	stored, err := s.put(ctx, rules, how, r.GetDryRun())
	if err != nil {
		return nil, err
	}
	response := &rulesv1.ImportRulesResponse{}
	response.Rules, response.Created, response.Updated, response.Unchanged = imported(stored)
	for _, p := range problems[:min(len(problems), maxListedProblems)] {
		response.Problems = append(response.Problems, &rulesv1.RuleProblem{File: p.File, Line: int32(p.Line), Rule: p.Rule, Text: p.Text})
	}
	return response, nil
}

// ImportStarterRules stores the current edition of the rules that ship with the product.
func (s *Rules) ImportStarterRules(ctx context.Context, _ *rulesv1.ImportStarterRulesRequest) (*rulesv1.ImportStarterRulesResponse, error) {
	rules, err := starter.Rules()
	if err != nil {
		return nil, err
	}
	stored, err := s.put(ctx, rules, ruleset.StarterRules, false)
	if err != nil {
		return nil, err
	}
	response := &rulesv1.ImportStarterRulesResponse{}
	response.Rules, response.Created, response.Updated, response.Unchanged = imported(stored)
	return response, nil
}

func (s *Rules) put(ctx context.Context, rules []document.Rule, how ruleset.PutOptions, dryRun bool) (stored []*ruleset.Stored, err error) {
	if dryRun {
		return ruleset.Plan(ctx, s.store.Reader, rules, how)
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		stored, err = ruleset.Put(ctx, s.store, tx, rules, how)
		return err
	})
	return stored, err
}

var outcomes = map[ruleset.Outcome]rulesv1.RuleImportOutcome{
	ruleset.Created:   rulesv1.RuleImportOutcome_RULE_IMPORT_OUTCOME_CREATED,
	ruleset.Updated:   rulesv1.RuleImportOutcome_RULE_IMPORT_OUTCOME_UPDATED,
	ruleset.Unchanged: rulesv1.RuleImportOutcome_RULE_IMPORT_OUTCOME_UNCHANGED,
}

func imported(stored []*ruleset.Stored) (rules []*rulesv1.ImportedRule, created, updated, unchanged int32) {
	for _, one := range stored {
		switch one.Outcome {
		case ruleset.Created:
			created++
		case ruleset.Updated:
			updated++
		default:
			unchanged++
		}
		rules = append(rules, &rulesv1.ImportedRule{
			Name: one.Rule.Name, Outcome: outcomes[one.Outcome], Version: one.Version, Mode: ruleset.Mode(one.Mode),
		})
	}
	return rules, created, updated, unchanged
}

// parseFiles parses all files. A name in two files is a problem in the second.
func parseFiles(files []*rulesv1.RuleFile) (rules []document.Rule, problems []document.Problem) {
	in := map[string]string{}
	for _, file := range files {
		parsed, wrong := document.Parse([]byte(file.GetText()), file.GetName())
		problems = append(problems, wrong...)
		for _, rule := range parsed {
			if first, twice := in[rule.Name]; twice {
				problems = append(problems, document.Problem{File: file.GetName(), Line: rule.Line, Rule: rule.Name, Text: "the id is there already, in " + first})
				continue
			}
			in[rule.Name] = fmt.Sprintf("%s:%d", file.GetName(), rule.Line)
			rules = append(rules, rule)
		}
	}
	return rules, problems
}

// problemsError builds the error for invalid rules: the text has the first problem, the details the first few.
func problemsError(field string, problems []document.Problem) error {
	details := &errdetails.BadRequest{}
	for _, p := range problems[:min(len(problems), maxShownProblems)] {
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: field, Description: p.String()})
	}
	text := field + ": " + problems[0].String()
	switch more := len(problems) - 1; {
	case more == 1:
		text += " (and one more problem)"
	case more > 1:
		text += fmt.Sprintf(" (and %d more problems)", more)
	}
	return apierr.New(codes.InvalidArgument, errorsv1.Reason_REASON_INVALID_ARGUMENT, text, details)
}
