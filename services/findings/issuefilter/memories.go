package issuefilter

import (
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// memories adds the conditions on memories that an analysis used, and on memories that have the finding in their scope.
func (c *Conditions) memories(f *findingsv1.IssuesFilter) {
	if id := c.id("aiMemoryReferenced", f.GetAiMemoryReferenced()); id != 0 {
		c.used(id, !f.GetIncludeAiMemoryRendered())
	}
	if id := c.id("aiMemoryRendered", f.GetAiMemoryRendered()); id != 0 {
		c.used(id, false)
	}
	if id := c.id("aiMemoryWillFlipVerdict", f.GetAiMemoryWillFlipVerdict()); id != 0 {
		c.flipped(id)
	}
	if id := c.id("memoryIdInScope", f.GetMemoryIdInScope()); id != 0 {
		c.inScope(id)
	}
}

// used adds the condition that an analysis had the memory in its prompt. With referenced, the analysis must also name
// the memory as a reason.
func (c *Conditions) used(memoryID int64, referenced bool) {
	c.raw(func(s *entsql.Selector) []any {
		parts := []any{
			s.C(finding.FieldID), " IN (SELECT u.finding_id FROM ai_memory_uses u WHERE u.deployment_id = ", arg{c.DeploymentID},
			" AND u.memory_id = ", arg{memoryID},
		}
		if referenced {
			parts = append(parts, " AND u.referenced = ", arg{true})
		}
		return append(parts, ")")
	})
}

// flipped adds the condition that an analysis with the memory gave another verdict than the previous one without it.
func (c *Conditions) flipped(memoryID int64) {
	c.raw(func(s *entsql.Selector) []any {
		return []any{
			s.C(finding.FieldID), " IN (SELECT u.finding_id FROM ai_memory_uses u JOIN ai_analyses a ON a.id = u.analysis_id WHERE u.deployment_id = ",
			arg{c.DeploymentID}, " AND u.memory_id = ", arg{memoryID}, " AND a.deployment_id = ", arg{c.DeploymentID},
			" AND a.status = 'done' AND a.verdict <> '' AND a.verdict <> (SELECT b.verdict FROM ai_analyses b",
			" WHERE b.deployment_id = a.deployment_id AND b.finding_id = a.finding_id AND b.id < a.id AND b.status = 'done' AND b.verdict <> ''",
			" AND NOT EXISTS (SELECT 1 FROM ai_memory_uses v WHERE v.deployment_id = b.deployment_id AND v.analysis_id = b.id AND v.memory_id = u.memory_id)",
			" ORDER BY b.id DESC LIMIT 1))",
		}
	})
}

// inScope adds the condition that the finding is in the scope of the memory. It is memory.InScope of services/ai/memory
// in SQL; a test compares the two.
func (c *Conditions) inScope(memoryID int64) {
	where := func(s *entsql.Selector) {
		rule, owner, path := s.C(finding.FieldRuleID), s.C(finding.FieldProjectID), s.C(finding.FieldFilePath)
		prefixes := "json_each(m.path_prefixes) prefix"
		if s.Dialect() == dialect.Postgres {
			prefixes = "jsonb_array_elements_text(m.path_prefixes) AS prefix(value)"
		}
		s.Where(text(
			"EXISTS (SELECT 1 FROM ai_memories m WHERE m.deployment_id = ", arg{c.DeploymentID}, " AND m.id = ", arg{memoryID},
			" AND m.stage <> 'deleted' AND (m.rule_id IS NULL OR m.rule_id = ", rule, ") AND (m.project_id IS NULL OR m.project_id = ", owner, ")",
			" AND (m.project_tag_id IS NULL OR EXISTS (SELECT 1 FROM project_tags l WHERE l.deployment_id = m.deployment_id",
			" AND l.project_id = ", owner, " AND l.tag_id = m.project_tag_id))",
			" AND (m.vulnerability_class = '' OR EXISTS (SELECT 1 FROM rules r WHERE r.deployment_id = m.deployment_id AND r.id = ", rule,
			" AND ", containsFields(s.Dialect(), "r.content", encodedText(s.Dialect(), "m.vulnerability_class", 50)), "))",
			" AND (NOT EXISTS (SELECT 1 FROM ", prefixes, ") OR EXISTS (SELECT 1 FROM ", prefixes, " WHERE ", path, " = prefix.value",
			" OR substr(", path, ", 1, length(prefix.value) + 1) = prefix.value || '/')))",
		))
	}
	c.List = append(c.List, Condition{scans: true, Where: where})
}

// risks are the sensitivities of components.
var risks = map[string]string{"high": "high", "low": "low", "neutral": "neutral"}

// sensitivities adds the condition on the component that AI named: by its tag, or by its sensitivity.
func (c *Conditions) sensitivities(values []string) {
	var tags []string
	var options []predicate.Finding
	for _, v := range values {
		word := strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(v), "sensitivity_"), "_sensitivity")
		risk, known := risks[word]
		if !known {
			tags = append(tags, v)
			continue
		}
		options = append(options, func(s *entsql.Selector) {
			tag := s.C(finding.FieldComponentTag)
			s.Where(text(tag, " IS NOT NULL AND ", containsFields(s.Dialect(), s.C(finding.FieldContent),
				encodedText(s.Dialect(), "'"+risk+"'", 10), encodedText(s.Dialect(), tag, 18))))
		})
	}
	if len(tags) > 0 {
		options = append(options, store.OneOf(finding.FieldComponentTag, tags))
	}
	if len(options) > 0 {
		c.List = append(c.List, Condition{Column: finding.FieldComponentTag, Where: anyOption(options)})
	}
}

// containsFields is the condition that an encoded message contains consecutive text fields. A field is its number's
// byte, its length and its text, so it cannot match inside another text. This saves columns, and their cost at every
// upload, for rare filters that select few findings.
func containsFields(dialectName, column string, fields ...string) string {
	needle := strings.Join(fields, " || ")
	if dialectName == dialect.Postgres {
		return "position(convert_to(" + needle + ", 'UTF8') IN " + column + ") > 0"
	}
	return "instr(" + column + ", CAST(" + needle + " AS BLOB)) > 0"
}

// encodedText writes the text of an expression as a message encodes it, after the given bytes. The text may have up to
// 127 bytes, so that its length is one byte.
func encodedText(dialectName, expression string, before ...int) string {
	char, size := "char(", "length(CAST("+expression+" AS BLOB))"
	if dialectName == dialect.Postgres {
		char, size = "chr(", "greatest(1, octet_length("+expression+"))" // there is no chr(0)
	}
	var b strings.Builder
	for _, code := range before {
		b.WriteString(char + strconv.Itoa(code) + ") || ")
	}
	return b.String() + char + size + ") || " + expression
}
