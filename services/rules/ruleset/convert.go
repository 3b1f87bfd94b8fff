package ruleset

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/document"
)

// Values of the columns.
const (
	ModeMonitor = "monitor"
	ModeComment = "comment"
	ModeBlock   = "block"
	ModeOff     = "off"

	OriginStarter = "starter"
	OriginImport  = "import"
	OriginPublish = "publish"

	VisibilityOrgPrivate = "org_private"
	VisibilityUnlisted   = "unlisted"
)

// Modes maps modes to stored words.
var Modes = map[rulesv1.RuleMode]string{
	rulesv1.RuleMode_RULE_MODE_MONITOR: ModeMonitor,
	rulesv1.RuleMode_RULE_MODE_COMMENT: ModeComment,
	rulesv1.RuleMode_RULE_MODE_BLOCK:   ModeBlock,
	rulesv1.RuleMode_RULE_MODE_OFF:     ModeOff,
}

// Origins maps origins to stored words.
var Origins = map[rulesv1.RuleOrigin]string{
	rulesv1.RuleOrigin_RULE_ORIGIN_STARTER: OriginStarter,
	rulesv1.RuleOrigin_RULE_ORIGIN_IMPORT:  OriginImport,
	rulesv1.RuleOrigin_RULE_ORIGIN_PUBLISH: OriginPublish,
}

// Products maps products to stored words.
var Products = map[rulesv1.RuleProduct]string{
	rulesv1.RuleProduct_RULE_PRODUCT_SAST:    document.ProductSAST,
	rulesv1.RuleProduct_RULE_PRODUCT_SCA:     document.ProductSCA,
	rulesv1.RuleProduct_RULE_PRODUCT_SECRETS: document.ProductSecrets,
}

var visibilities = map[rulesv1.RuleVisibility]string{
	rulesv1.RuleVisibility_RULE_VISIBILITY_ORG_PRIVATE: VisibilityOrgPrivate,
	rulesv1.RuleVisibility_RULE_VISIBILITY_UNLISTED:    VisibilityUnlisted,
}

// numberOf finds the number of a word; 0 if there is none.
func numberOf[N ~int32](words map[N]string, word string) N {
	for number, known := range words {
		if known == word {
			return number
		}
	}
	return 0
}

// Mode converts a stored mode.
func Mode(word string) rulesv1.RuleMode { return numberOf(Modes, word) }

// Convert converts a rule to the API's form.
func Convert(row *ent.RuleDocument) *rulesv1.Rule {
	rule := &rulesv1.Rule{
		Id: row.ID, Name: row.Name, Origin: numberOf(Origins, row.Origin), Product: numberOf(Products, row.Product),
		Severity: row.Severity, Languages: row.Languages, Mode: Mode(row.Mode), Visibility: numberOf(visibilities, row.Visibility),
		Version: row.Version, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), UpdatedAt: timestamppb.New(store.Time(row.UpdatedAt)),
	}
	if isQuarantined(row) {
		rule.Quarantine = &rulesv1.RuleQuarantine{Reason: row.QuarantineReason, ScanId: row.QuarantineScanID}
		if row.QuarantinedAt != nil {
			rule.Quarantine.Since = timestamppb.New(store.Time(*row.QuarantinedAt))
		}
	}
	return rule
}
