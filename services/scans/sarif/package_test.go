package sarif_test

import (
	"fmt"
	"testing"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/sarif"
)

func TestPackages(t *testing.T) {
	for _, c := range []struct {
		tool, rule, message, uri, more string
		want                           sarif.Package
	}{
		{"Trivy", "CVE-2019-10744",
			"Package: lodash\nInstalled Version: 4.17.4\nVulnerability CVE-2019-10744\nSeverity: CRITICAL\nFixed Version: 4.17.12\nLink: [CVE-2019-10744](https://a.test/x)",
			"web/package-lock.json", "", sarif.Package{Name: "lodash", Version: "4.17.4", FixedVersion: "4.17.12", Ecosystem: "npm", AdvisoryID: "CVE-2019-10744"}},
		{"Trivy", "CVE-2020-1", "Package: p\nInstalled Version: 1\nFixed Version: \nLink: x", "go.mod", "",
			sarif.Package{Name: "p", Version: "1", Ecosystem: "gomod"}},
		{"Grype", "GHSA-JF85-cpcp-j695-lodash", "A critical vulnerability in npm package: lodash, version 4.17.4 was found at: /package-lock.json", "package-lock.json", "",
			sarif.Package{Name: "lodash", Version: "4.17.4", Ecosystem: "npm", AdvisoryID: "GHSA-jf85-cpcp-j695"}},
		{"osv-scanner", "CVE-2021-23337", "Package '@scope/lodash@4.17.4' is vulnerable to 'CVE-2021-23337' (also known as 'GHSA-35jh-r3h4-6jhm').", "yarn.lock", "",
			sarif.Package{Name: "@scope/lodash", Version: "4.17.4", Ecosystem: "npm", AdvisoryID: "CVE-2021-23337"}},
		{"osv-scanner", "GO-2024-2687", "Package 'golang.org/x/net@0.20.0' is vulnerable to 'GO-2024-2687'.", "go.mod", "",
			sarif.Package{Name: "golang.org/x/net", Version: "0.20.0", Ecosystem: "gomod", AdvisoryID: "GO-2024-2687"}},
		{"Snyk Open Source", "SNYK-JS-LODASH-450202", "This file introduces a vulnerable lodash package with a high severity vulnerability.", "package.json", "",
			sarif.Package{Name: "lodash", Ecosystem: "npm", AdvisoryID: "SNYK-JS-LODASH-450202"}},
		{"dependency-check", "CVE-2021-44228", "m", "app.jar", `,"properties":{"purl":"pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1?type=jar"}`,
			sarif.Package{Name: "org.apache.logging.log4j:log4j-core", Version: "2.14.1", Ecosystem: "maven", AdvisoryID: "CVE-2021-44228"}},
		{"any sca", "RUSTSEC-2021-0001", "m", "Cargo.lock", `,"properties":{"packageName":"x","packageVersion":"1.0","fixedVersion":"1.1","ecosystem":"rust"}`,
			sarif.Package{Name: "x", Version: "1.0", FixedVersion: "1.1", Ecosystem: "cargo", AdvisoryID: "RUSTSEC-2021-0001"}},
		{"any sca", "r", "pkg:npm/%40a/b@1.2.3 has a hole, fixed in 1.2.4", "x", "", sarif.Package{Name: "@a/b", Version: "1.2.3", FixedVersion: "1.2.4", Ecosystem: "npm"}},
	} {
		doc := fmt.Sprintf(`{"ruleId":%q,"message":{"text":%q},"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q}}}]%s}`, c.rule, c.message, c.uri, c.more)
		r := only(t, read(t, driver(c.tool, doc), sarif.WithProduct(vocabulary.SCA)))
		if c.rule == "CVE-2020-1" { // too short for a CVE
			c.want.AdvisoryID = ""
		}
		if r.Package == nil || *r.Package != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.tool, c.rule, r.Package, c.want)
		}
	}
	if r := only(t, read(t, driver("grype", `{"ruleId":"r","message":{"text":"nothing known"}}`))); r.Package != nil {
		t.Errorf("package %+v out of nothing", r.Package)
	}
	if r := only(t, read(t, driver("gosec", `{"ruleId":"r","message":{"text":"pkg:npm/a@1"}}`))); r.Package != nil {
		t.Errorf("a code scanner's result has package %+v", r.Package)
	}
}

func TestOneToolForSeveralProducts(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"Trivy","rules":[{"id":"CVE-2024-12345","properties":{"tags":["vulnerability","security","HIGH"]}},
		{"id":"aws-key","properties":{"tags":["secret","security","CRITICAL"]}},{"id":"DS002","properties":{"tags":["misconfiguration","security","HIGH"]}}]}},
		"results":[{"ruleId":"CVE-2024-12345","message":{"text":"Package: a\nInstalled Version: 1"}},{"ruleId":"aws-key","message":{"text":"m"}},{"ruleId":"DS002","message":{"text":"m"}}]`))
	var got []string
	for _, r := range o.results {
		got = append(got, r.Product)
	}
	if fmt.Sprint(got) != "[sca secrets sast]" || o.results[0].Package == nil || o.results[2].Package != nil {
		t.Errorf("products are %v", got)
	}
}
