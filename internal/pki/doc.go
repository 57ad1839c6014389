// Package pki owns keys, certificates and chains: the keystore on disk, the
// certificate that TLS serves, what an issued certificate may say, and whether
// a presented one is believed. Every certificate this program signs comes from
// [Signer.Sign] under a [Grant]; every certificate it believes went through
// [Roots.VerifyLeaf]. It knows nothing of identities, HTTP or the store, and of
// our packages it imports only fault.
package pki
