#!/bin/sh
# Makes the certificates of the tests, for 100 years: `sh make.sh`. Their keys protect nothing.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj "/CN=$1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign \
        -keyout "$work/$1.key" -out "$1.pem"
}
# NAME AUTHORITY USE FROM TO
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout "$1.key" -out "$work/$1.csr"
    printf '%s\n' "subjectAltName=DNS:localhost,DNS:admin.example.org,IP:127.0.0.1" \
        "extendedKeyUsage=$3" basicConstraints=CA:FALSE > "$work/$1.ext"
    : > "$work/index"
    printf '[ca]\ndefault_ca=c\n[c]\ndatabase=%s\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' \
        "$work/index" "$work" > "$work/ca.cnf"
    openssl ca -batch -notext -config "$work/ca.cnf" -cert "$2.pem" -keyfile "$work/$2.key" \
        -startdate "$4" -enddate "$5" -extfile "$work/$1.ext" -in "$work/$1.csr" -out "$1.pem"
}
authority ca
authority foreign-ca
certificate server ca serverAuth 20200101000000Z 21200101000000Z
certificate rotated ca serverAuth 20200101000000Z 21200101000000Z
certificate expired ca serverAuth 20200101000000Z 20210101000000Z
certificate client ca clientAuth 20200101000000Z 21200101000000Z
certificate expired-client ca clientAuth 20200101000000Z 20210101000000Z
certificate foreign-client foreign-ca clientAuth 20200101000000Z 21200101000000Z
