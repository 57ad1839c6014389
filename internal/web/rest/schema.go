package rest

import "netkeep.internal/internal/lang/kind"

// sharedSchemas are those that every document has, beside those of package
// kind.
var sharedSchemas = map[string]kind.Schema{
	"createLocation": says("Which record it is and where.", object(kind.Schema{
		"id": says("Id of the record.", text), "_links": kind.RefTo("links"),
	}, "id", "_links")),
	"meta": says("About the answer; empty where there is nothing to say.", object(kind.Schema{})),
	"listMeta": says("About the page that the answer holds.", object(kind.Schema{
		"pagination":       kind.RefTo("pagination"),
		"filterableFields": says("Names that the filter and sort parameters may use.", kind.ListOf(text)),
	}, "pagination", "filterableFields")),
	"pagination": says("Which part of all entries the answer holds.", object(kind.Schema{
		"limit":      says("How many entries the page may have.", whole),
		"offset":     says("How many entries come before the page.", whole),
		"totalCount": says("How many entries match in all.", whole),
	}, "limit", "offset", "totalCount")),
	"errorEnvelope": object(kind.Schema{
		"error": kind.RefTo("error"),
		"meta": says("About the answer.", object(kind.Schema{
			"apiEnrollmentVersion": says("Always 0.0.1; some clients look for it.", text),
			"apiVersion":           says("Always 0.0.1; some clients look for it.", text),
		})),
	}, "error", "meta"),
	"error": says("What went wrong.", object(kind.Schema{
		"code":      says("What went wrong, for programs, such as NOT_FOUND.", text),
		"message":   says("What went wrong, for people.", text),
		"requestId": says("Id under which the controller's log has the request.", text),
		"cause": says("What exactly is wrong: a field with its value, or the failure behind this one.", object(kind.Schema{
			"field":   says("Name of the field or parameter that is not acceptable.", text),
			"reason":  says("Why it is not.", text),
			"value":   says("What it was, cut short if it is long; nothing is repeated of a secret.", text),
			"code":    says("What the failure behind this one is, for programs.", text),
			"message": says("What the failure behind this one is, for people.", text),
		})),
	}, "code", "message", "requestId")),
}

var (
	text  = kind.Schema{"type": "string"}
	whole = kind.Schema{"type": "integer", "format": "int64"}
)

// says adds a sentence to a schema.
func says(doc string, s kind.Schema) kind.Schema { return kind.Described(s, doc) }

func object(props kind.Schema, required ...string) kind.Schema {
	s := kind.Schema{"type": "object", "properties": props}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
