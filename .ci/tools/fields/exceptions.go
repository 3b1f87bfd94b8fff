package main

import "regexp"

// exception says why fields are right without a writer or reader. The pattern matches their whole names. Fields of
// messages have the reason in their comment instead, unless it is the same for many.
type exception struct {
	pattern *regexp.Regexp
	why     string
}

func except(pattern, why string) exception {
	return exception{regexp.MustCompile("^(" + pattern + ")$"), why}
}

var exceptions = []exception{
	except(`.*Request\.(deployment_id|deployment_slug)`, "services/internal/access reads it by its name"),
	except(`ai\.v1\.(Memory|AiMemorySource)\..*`, "a request repeats the whole memory; the server sets these"),
	except(`notifications\.v1\.(Automation|AutomationAction)\.(id|created_.*|updated_.*|internal_only)`, "a request repeats the whole automation; the server sets these"),
	except(`scm\.v1\.ReviewCommentContent\.id`, "a request repeats the whole content; the server sets it"),
	except(`supplychain\.v1\.(AdditionalConfig|MavenConfig|NpmConfig)\..*`, "stored whole and answered as it was sent"),
	except(`supplychain\.v1\.CodeArtifactCredentials\.assume_role_arn`, "sealed whole with the other credentials"),

	except(`(notificationrule|packagemanagerconfig|scmconfig)\.use_network_broker`, "kept for clients: there is no network broker yet"),
	except(`packagemanagerconfig\.(requires_auth|additional_config|registry_type|credential_kind)`, "kept for clients: nothing installs packages yet"),
	except(`scmconfig\.source_id`, "a fact about the account at the host, shown to clients"),
	except(`ruledocument\.(quarantine_scan_id|quarantined_at)`, "facts about a quarantine, shown to people"),
	except(`notifications\.v1\.ChatAppNotificationMapping\.projects`, "of the contract; rules send findings of all projects"),
	except(`notificationrule\.last_report_at`, "a fact, shown to people"),
	except(`aimemory\.created_by`, "a fact, shown to people"),
	except(`scmapp\.(created_by|entity_type|client_id)|invitation\.invited_by|workflowrun\.retry_of`, "facts for people who look into the database"),
	except(`workflowattempt\.cost_credits|workflowrun\.cost_usd`, "the same costs in the other unit, for people who look into the database"),
	except(`aianalysis\.counted`, "true by default; rows of earlier versions may have false"),
	except(`store\.v1\.(FindingContent|FindingMatch)\.identity_version`, "tells a later version which rows it has to read in the older way"),
}
