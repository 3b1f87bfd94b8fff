package policies

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/ruleversion"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/ticketinginstance"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/projects/byname"
)

// refCategory is the kind of categories, which rules have. The type of its conditions has the same name.
const refCategory = "category"

// categories are the usual categories of rules. Others exist if a rule has them.
var categories = []string{
	"best-practice", "caching", "compatibility", "correctness", "maintainability", "performance", "portability", "secrets", "security",
}

// namesPerQuery keeps a query below the databases' parameter limits.
const namesPerQuery = 500

// references adds a problem for each value that names a missing object, in the order of the bundle, and returns those
// that the caller sees. A rule exists if scanners get it or if it ever had a finding.
func (c *checker) references(ctx context.Context, reader *ent.Client) (visible, error) {
	exists := visible{}
	for reference, find := range map[remediation.Reference]func([]string) ([]string, error){
		remediation.RefProject: func(names []string) ([]string, error) {
			found, err := byname.All(ctx, reader, names)
			for name, row := range found {
				c.projects[name] = row.Name
			}
			return slices.Collect(maps.Keys(found)), err
		},
		remediation.RefTag: func(names []string) ([]string, error) {
			return reader.Tag.Query().Where(tag.NameIn(names...)).Select(tag.FieldName).Strings(ctx)
		},
		remediation.RefRule: func(names []string) ([]string, error) {
			found, err := reader.Rule.Query().Where(rule.NameIn(names...), ofVisibleFindings(ctx)).Select(rule.FieldName).Strings(ctx)
			if err != nil {
				return nil, err
			}
			documents, err := reader.RuleDocument.Query().Where(ruledocument.NameIn(names...)).Select(ruledocument.FieldName).Strings(ctx)
			return append(found, documents...), err
		},
		refCategory: func(names []string) ([]string, error) { return existingCategories(ctx, reader, names) },
		remediation.RefNotificationRule: func(ids []string) ([]string, error) {
			return withIDs(ids, func(numbers []int64) ([]int64, error) {
				return reader.NotificationRule.Query().Where(store.OneOf(notificationrule.FieldID, numbers)).IDs(ctx)
			})
		},
		remediation.RefTicketingInstance: func(ids []string) ([]string, error) {
			return withIDs(ids, func(numbers []int64) ([]int64, error) {
				return reader.TicketingInstance.Query().Where(store.OneOf(ticketinginstance.FieldID, numbers)).IDs(ctx)
			})
		},
	} {
		found, err := c.existing(reference, find)
		if err != nil {
			return nil, err
		}
		exists[reference] = found
	}
	for _, n := range c.named {
		if !exists[n.reference][n.value] {
			c.slug = n.slug
			if c.limited && hidden[n.reference] {
				c.leaveOut(n.field, string(n.reference), n.value)
				continue
			}
			c.add(errorsv1.Reason_REASON_UNKNOWN_REFERENCE, n.field, n.value, "%s: there is no %s %s", n.field, n.reference, apierr.Quote(n.value))
		}
	}
	c.slug = ""
	return exists, nil
}

// maxSearched bounds the categories of a request that the documents of all rules are searched for.
const maxSearched = 10

// existingCategories returns the names that are usual, or that a rule with findings or a rule of the scanners has.
func existingCategories(ctx context.Context, reader *ent.Client, names []string) ([]string, error) {
	exist, err := reader.Rule.Query().Where(store.OneOf(rule.FieldCategory, names)).Select(rule.FieldCategory).Strings(ctx)
	if err != nil {
		return nil, err
	}
	exist = append(exist, categories...)
	unknown := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(exist, name) })
	for _, name := range unknown[:min(len(unknown), maxSearched)] {
		written, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		used, err := reader.RuleVersion.Query().Where(holding(append([]byte(`"category":`), written...))).Exist(ctx)
		if err != nil {
			return nil, err
		}
		if used {
			exist = append(exist, name)
		}
	}
	return exist, nil
}

// holding selects the versions of rules whose document has some bytes.
func holding(part []byte) predicate.RuleVersion {
	return func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) {
			if b.Dialect() == dialect.Postgres {
				b.WriteString("position(").Arg(part).WriteString(" IN ").Ident(s.C(ruleversion.FieldDocument)).WriteString(") > 0")
				return
			}
			b.WriteString("instr(").Ident(s.C(ruleversion.FieldDocument)).WriteString(", ").Arg(part).WriteString(") > 0")
		}))
	}
}

// ownNames gives projects their own names in the conditions: policies are evaluated by them.
func (c *checker) ownNames(policies []*policiesv1.RemediationPolicy) {
	for _, policy := range policies {
		for _, condition := range policy.GetFilters().GetConditions() {
			if kind, _ := remediation.ConditionTypeOf(condition.GetType()); kind.Reference != remediation.RefProject {
				continue
			}
			for i, value := range condition.GetValues() {
				value = strings.TrimSpace(value)
				if own := c.projects[value]; own != "" && own != value {
					condition.Values[i] = own
				}
			}
		}
	}
}

// withIDs returns the ids that find finds.
func withIDs(ids []string, find func([]int64) ([]int64, error)) ([]string, error) {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i], _ = strconv.ParseInt(id, 10, 64) // the checker has parsed it
	}
	found, err := find(numbers)
	if err != nil {
		return nil, err
	}
	exist := make([]string, len(found))
	for i, id := range found {
		exist[i] = strconv.FormatInt(id, 10)
	}
	return exist, nil
}

// ofVisibleFindings excludes rules that have findings only in projects hidden from the caller.
func ofVisibleFindings(ctx context.Context) predicate.Rule {
	return func(s *sql.Selector) {
		if seen := tenant.OfVisibleRule(ctx, s, s.C(rule.FieldID)); seen != nil {
			s.Where(seen)
		}
	}
}

// existing returns the names of one kind that exist.
func (c *checker) existing(reference remediation.Reference, find func([]string) ([]string, error)) (map[string]bool, error) {
	var names []string
	for _, n := range c.named {
		if n.reference == reference {
			names = append(names, n.value)
		}
	}
	slices.Sort(names)
	exists := map[string]bool{}
	for chunk := range slices.Chunk(slices.Compact(names), namesPerQuery) {
		found, err := find(chunk)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			exists[name] = true
		}
	}
	return exists, nil
}
