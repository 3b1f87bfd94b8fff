// Texts of a scanner that wants to be more than text, and a report that has them wherever SARIF has a string.

/** Scripts that run set this. */
export const flag = "palisadeHit";

/** Where hostile texts point to. No request may go there. */
export const elsewhere = "https://evil.test";

export const hostileTexts = [
  `<script>window.${flag}=1</script>`,
  `<img src=x onerror="window.${flag}=2">`,
  `"><svg/onload=window.${flag}=3>`,
  `'-window.${flag}=4-'`,
  `</textarea></title></style><script>window.${flag}=5</script>`,
  `<style>*{display:none!important}</style>`,
  `<base href="${elsewhere}/"><iframe srcdoc="<script>parent.${flag}=6</script>"></iframe>`,
  `<a href="javascript:window.${flag}=7">link</a>`,
  `[link](javascript:window.${flag}=8) [link](data:text/html,<script>1</script>) [link](vbscript:x)`,
  `![image](${elsewhere}/pixel.png) <img src="${elsewhere}/pixel.gif">`,
  `<form action="${elsewhere}"><button>Sign in</button></form>`,
  `\${window.${flag}=9} {{window.${flag}=10}} <%= 1 %>`,
  `=HYPERLINK("${elsewhere}","open")`,
  "\u202Egnp.exe\u202C \u200Bzero\u200Dwidth\uFEFF \u0000null \u001B[31mred",
  "Z\u0351\u036B\u0343\u036A\u0302\u036B\u033D\u034F\u0334\u0319\u0324\u031E\u0349\u035A\u032F\u031E\u0320\u034Da\u0369\u0364 👩‍👩‍👧‍👦 🏳️‍🌈 ﷽",
  "unbroken".repeat(60),
] as const;

/** Names of members that every object has. Looking a text up in an object literal finds them. */
export const builtIn = ["__proto__", "constructor", "toString", "hasOwnProperty"] as const;

const everything = hostileTexts.join(" ");

/** A SARIF report with one result for each text. Each string of a result, of its rule and of the tool is hostile. */
export function hostileReport(): string {
  const texts = [...hostileTexts, ...builtIn];
  const message = (text: string) => ({ text: `${text} in a message`, markdown: `**${text}** in Markdown` });
  const place = (text: string, line: number) => ({
    physicalLocation: {
      artifactLocation: { uri: `src/${text.replace(/[\u0000-\u001F]/g, "")}.go` },
      region: { startLine: line, endLine: line, startColumn: 1, endColumn: 20, snippet: { text: `x := "${text}"` } },
      contextRegion: { startLine: 1, endLine: line + 2, snippet: { text: `// before\n${text}\n// after\n` } },
    },
    logicalLocations: [{ name: text, fullyQualifiedName: `pkg.${text}`, kind: text }],
    message: message(text),
  });
  const rules = texts.map((text, at) => ({
    id: builtIn.includes(text as (typeof builtIn)[number]) ? text : `rule-${at} ${text}`,
    name: text,
    shortDescription: message(text),
    fullDescription: message(text),
    help: { text: everything, markdown: `# ${text}\n\n${hostileTexts.join("\n\n")}\n\n[safe](https://example.com/safe) <${elsewhere}/auto>` },
    helpUri: at % 2 === 0 ? `javascript:window.${flag}=11` : `${elsewhere}/help?${encodeURIComponent(text)}`,
    properties: { tags: [text, "security", "external/cwe/cwe-79"], "security-severity": "8.1", category: text },
  }));
  const results = texts.map((text, at) => ({
    ruleId: rules[at]!.id,
    ruleIndex: at,
    level: "error",
    message: message(text),
    locations: [place(text, at + 3)],
    relatedLocations: [place(text, at + 4)],
    codeFlows: [{ threadFlows: [{ locations: [{ location: place(text, 1) }, { location: place(text, 2) }, { location: place(text, at + 3) }] }] }],
    partialFingerprints: { primaryLocationLineHash: `${at}:${text}` },
    hostedViewerUri: `javascript:window.${flag}=12`,
    properties: { note: text },
  }));
  return JSON.stringify({
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{
      tool: { driver: { name: `scanner ${hostileTexts[1]}`, version: `1 ${hostileTexts[0]}`, informationUri: `javascript:window.${flag}=13`, organization: everything, rules } },
      automationDetails: { id: `category ${hostileTexts[2]}/` },
      versionControlProvenance: [{ repositoryUri: `javascript:window.${flag}=14`, branch: hostileTexts[0] }],
      invocations: [{
        executionSuccessful: true,
        toolExecutionNotifications: [{ level: "warning", message: message(hostileTexts[1]), descriptor: { id: hostileTexts[0] } }],
      }],
      results,
    }],
  });
}
