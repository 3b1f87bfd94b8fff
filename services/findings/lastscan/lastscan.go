// Package lastscan says which scan reported a finding last. A scan that reports the same findings as the scan before
// writes nothing about them: a finding without a stored scan was reported by the latest scan of its analysis. Only a
// scan that does not report a finding stores which one did.
package lastscan

import (
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Products is the bit set of products that a coverage stores. An empty list means all products.
func Products(list []string) (set int32) {
	for n, product := range vocabulary.Products {
		if len(list) == 0 || slices.Contains(list, product) {
			set |= 1 << n
		}
	}
	return set
}

// List is the inverse of Products.
func List(set int32) (list []string) {
	for n, product := range vocabulary.Products {
		if set&(1<<n) != 0 {
			list = append(list, product)
		}
	}
	return list
}

// Write writes a subquery: the id of the latest scan whose analysis has a row of the table findings and reports its
// product. Diff scans count only where no full scan is. It is NULL without such a scan.
func Write(b *entsql.Builder, findings string) {
	b.WriteString("COALESCE((").WriteString(latest(findings, true)).WriteString("), (").WriteString(latest(findings, false)).WriteString("))")
}

func latest(findings string, full bool) string {
	same := make([]string, 0, 7)
	for _, columns := range [][2]string{
		{scancoverage.FieldDeploymentID, finding.FieldDeploymentID}, {scancoverage.FieldProjectID, finding.FieldProjectID},
		{scancoverage.FieldRef, finding.FieldRef}, {scancoverage.FieldTool, finding.FieldTool},
		{scancoverage.FieldAnalysisCategory, finding.FieldAnalysisCategory},
	} {
		same = append(same, "covered."+columns[0]+" = "+findings+"."+columns[1])
	}
	if full {
		same = append(same, "covered."+scancoverage.FieldIsFullScan)
	}
	same = append(same, "(covered."+scancoverage.FieldProducts+" IS NULL OR (covered."+scancoverage.FieldProducts+" & "+
		bit(findings+"."+finding.FieldIssueType)+") <> 0)")
	return "SELECT covered." + scancoverage.FieldScanID + " FROM " + scancoverage.Table + " AS covered WHERE " + strings.Join(same, " AND ") +
		" ORDER BY covered." + scancoverage.FieldScanID + " DESC LIMIT 1"
}

// bit is the bit of an issue type in SQL.
func bit(column string) string {
	var b strings.Builder
	b.WriteString("CASE " + column)
	for n, product := range vocabulary.Products {
		fmt.Fprintf(&b, " WHEN '%s' THEN %d", product, 1<<n)
	}
	return b.String() + " ELSE 0 END"
}
