package audit

// Together is for those who make a log of a million entries.
var Together = together
