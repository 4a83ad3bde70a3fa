/*
 * attribute_edits: actions on attributes, and what they do, for the tests of all that can have
 * attributes.
 *
 * Owner: constant.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_ATTRIBUTE_EDITS_H
#define PROFCOL_TESTS_ATTRIBUTE_EDITS_H

#define STRING(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define ATTRIBUTE(key, value) "{\"key\":\"" key "\",\"value\":{" value "}}"

/* {actions, attributes before, attributes after} */
static const struct attribute_edit {
    const char *actions;
    const char *before;
    const char *after; /* NULL: the same */
} attribute_edits[] = {
    /* insert, update, upsert */
    {"{key: a, action: insert, value: x}", "", STRING("a", "x")},
    {"{key: a, action: insert, value: x}", STRING("a", "y"), NULL},
    {"{key: a, action: update, value: x}", STRING("b", "y"), NULL},
    {"{key: a, action: update, value: x}", STRING("a", "y") "," STRING("b", "z"),
     STRING("a", "x") "," STRING("b", "z")},
    {"{key: a, action: UPSERT, value: x}", STRING("b", "y"), STRING("b", "y") "," STRING("a", "x")},
    {"{key: a, action: upsert, value: x}", STRING("b", "y") "," STRING("a", ""),
     STRING("b", "y") "," STRING("a", "x")},
    /* the types of YAML */
    {"{key: a, action: insert, value: 5}", "", ATTRIBUTE("a", "\"intValue\":\"5\"")},
    {"{key: a, action: insert, value: -5}", "", ATTRIBUTE("a", "\"intValue\":\"-5\"")},
    {"{key: a, action: insert, value: '5'}", "", STRING("a", "5")},
    {"{key: a, action: insert, value: 5.0}", "", ATTRIBUTE("a", "\"doubleValue\":5")},
    {"{key: a, action: insert, value: 0.0}", "", ATTRIBUTE("a", "\"doubleValue\":0")},
    {"{key: a, action: insert, value: []}", "", ATTRIBUTE("a", "\"arrayValue\":{}")},
    {"{key: a, action: insert, value: 1e3}", "", ATTRIBUTE("a", "\"doubleValue\":1000")},
    {"{key: a, action: insert, value: true}", "", ATTRIBUTE("a", "\"boolValue\":true")},
    {"{key: a, action: insert, value: \"\"}", "", STRING("a", "")},
    {"{key: a, action: insert, value: [1, x]}", "",
     ATTRIBUTE("a", "\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{\"stringValue\":\"x\"}]}")},
    {"{key: a, action: insert, value: {k: false}}", "",
     ATTRIBUTE("a",
               "\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"boolValue\":false}}]}")},
    /* other sources */
    {"{key: a, action: insert, from_attribute: b}", STRING("b", "y"),
     STRING("b", "y") "," STRING("a", "y")},
    {"{key: a, action: insert, from_attribute: b}", STRING("c", "y"), NULL},
    {"{key: a, action: insert, from_attribute: b, default_value: 1}", STRING("c", "y"),
     STRING("c", "y") "," ATTRIBUTE("a", "\"intValue\":\"1\"")},
    {"{key: a, action: insert, from_context: metadata.x}", STRING("c", "y"), NULL},
    /* delete */
    {"{key: a, action: delete}", STRING("a", "1") "," STRING("b", "2") "," STRING("a", "3"),
     STRING("b", "2")},
    {"{pattern: '^k8s\\.', action: delete}",
     STRING("k8s.pod", "1") "," STRING("b", "2") "," STRING("xk8s.", "3"),
     STRING("b", "2") "," STRING("xk8s.", "3")},
    /* a key that needs too many steps is meant */
    {"{pattern: '^(a|a)+$', action: delete}",
     STRING("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "1") "," STRING("b", "2"), STRING("b", "2")},
    {"{key: b, pattern: '^a', action: delete}",
     STRING("a", "1") "," STRING("b", "2") "," STRING("c", "3"), STRING("c", "3")},
    {"{key: a, action: delete}, {key: a, action: insert, value: n}", STRING("a", "1"),
     STRING("a", "n")},
    {"{key: a, action: insert, value: n}, {key: a, action: delete}", STRING("b", "1"), NULL},
    /* hash */
    {"{key: a, action: hash}", STRING("a", "abc"),
     STRING("a", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")},
    {"{pattern: a, action: hash}", ATTRIBUTE("xa", "\"boolValue\":true"),
     STRING("xa", "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a")},
    {"{key: a, action: hash}", ATTRIBUTE("a", "\"intValue\":\"1\""),
     STRING("a", "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8")},
    {"{key: a, action: hash}", ATTRIBUTE("a", "\"doubleValue\":1"),
     STRING("a", "6c3c396ed6b5c36dcae172271f462051b1266b851e92df3deea8ac65478fd712")},
    {"{key: a, action: hash}", ATTRIBUTE("a", "\"arrayValue\":{}"), STRING("a", "")},
    {"{key: a, action: hash}", STRING("b", "abc"), NULL},
    /* extract */
    {"{key: a, action: extract, pattern: '^(?P<host>[^:]+):(?P<port>\\d+)(?P<rest>x)?$'}",
     STRING("a", "h:80"),
     STRING("a", "h:80") "," STRING("host", "h") "," STRING("port", "80") "," STRING("rest", "")},
    {"{key: a, action: extract, pattern: '(?P<host>z)'}", STRING("a", "h:80"), NULL},
    {"{key: a, action: extract, pattern: '(?P<host>.*)'}", ATTRIBUTE("a", "\"intValue\":\"1\""),
     NULL},
    {"{key: a, action: extract, pattern: '(?P<a>.)'}", STRING("a", "xyz"), STRING("a", "x")},
    /* a match that would take forever counts as none */
    {"{key: a, action: extract, pattern: '(?P<x>(?:a+)+)$'}",
     STRING("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), NULL},
    /* convert */
    {"{key: a, action: convert, converted_type: int}", STRING("a", "12"),
     ATTRIBUTE("a", "\"intValue\":\"12\"")},
    {"{key: a, action: convert, converted_type: int}", STRING("a", "12x"), NULL},
    {"{key: a, action: convert, converted_type: int}", STRING("a", " 12"), NULL},
    {"{key: a, action: convert, converted_type: int}", ATTRIBUTE("a", "\"doubleValue\":2.9"),
     ATTRIBUTE("a", "\"intValue\":\"2\"")},
    {"{key: a, action: convert, converted_type: int}", ATTRIBUTE("a", "\"doubleValue\":1e+300"),
     NULL},
    {"{key: a, action: convert, converted_type: double}", STRING("a", "1.5"),
     ATTRIBUTE("a", "\"doubleValue\":1.5")},
    {"{key: a, action: convert, converted_type: double}", ATTRIBUTE("a", "\"boolValue\":true"),
     ATTRIBUTE("a", "\"doubleValue\":1")},
    {"{key: a, action: convert, converted_type: string}", ATTRIBUTE("a", "\"intValue\":\"-3\""),
     STRING("a", "-3")},
    {"{key: a, action: convert, converted_type: string}", ATTRIBUTE("a", "\"doubleValue\":0.1"),
     STRING("a", "0.1")},
    {"{key: a, action: convert, converted_type: string}", ATTRIBUTE("a", "\"arrayValue\":{}"),
     NULL},
};

enum { ATTRIBUTE_EDITS = sizeof attribute_edits / sizeof attribute_edits[0] };

#endif
