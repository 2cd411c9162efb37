/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "string-util.h"
#include "xml-reader.h"

/* Writes what is read as name(children or 'text'); elements called "skip" are skipped. */
static int dump(XmlReader *x, StrBuf *b) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                strbuf_addf(b, "%s", name);
                if (streq(name, "skip"))
                        r = xml_reader_skip(x);
                else if (name[0] == 't') {
                        _cleanup_free_ char *text = NULL;

                        r = xml_reader_text(x, &text);
                        if (r >= 0)
                                strbuf_addf(b, "'%s'", text);
                } else {
                        strbuf_add_char(b, '(');
                        r = dump(x, b);
                        strbuf_add_char(b, ')');
                }
                if (r < 0)
                        return r;
        }
        return r;
}

static int dump_document(const char *xml, size_t size, size_t max_bytes, StrBuf *b) {
        const char *name;
        XmlReader x;
        int r;

        r = xml_reader_open(&x, xml, size, max_bytes, &name);
        if (r < 0)
                return r;
        strbuf_addf(b, "%s(", name);
        r = dump(&x, b);
        if (r >= 0) {
                strbuf_add_char(b, ')');
                r = xml_reader_close(&x);
        }
        if (r < 0)
                assert_int_equal(xml_reader_close(&x), r); /* it sticks */
        return r;
}

TEST_CASE(test_documents) {
        static const struct {
                const char *what, *xml, *expected; /* NULL: refused */
        } rows[] = {
                { "an empty root", "<a/>", "a()" },
                { "an empty root in two tags", "<a></a>", "a()" },
                { "white space everywhere", "\n<a >\n <b />\t</a >\r\n", "a(b())" },
                { "a declaration", "<?xml version=\"1.0\" encoding='UTF-8'?>\n<a/>", "a()" },
                { "a byte order mark", "\xEF\xBB\xBF<a/>", "a()" },
                { "a name space", "<a xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\" x:y='1'/>", "a()" },
                { "text", "<a><t>one</t><t/><t></t></a>", "a(t'one't''t'')" },
                { "text keeps its blanks", "<a><t> o\n </t></a>", "a(t' o\n ')" },
                { "entities", "<a><t>&lt;&gt;&amp;&quot;&apos;</t></a>", "a(t'<>&\"'')" },
                { "numeric references", "<a><t>&#65;&#x42;&#xe9;&#x20AC;&#x1F600;</t></a>",
                  "a(t'AB\u00e9\u20ac\U0001F600')" },
                { "a bare greater-than", "<a><t>a > b</t></a>", "a(t'a > b')" },
                { "nested", "<a><b><c><t>x</t></c><c/></b></a>", "a(b(c(t'x')c()))" },
                { "skipping text", "<a><skip>x</skip><t>1</t></a>", "a(skipt'1')" },
                { "skipping an empty one", "<a><skip/><skip></skip><t>1</t></a>", "a(skipskipt'1')" },
                { "skipping a tree", "<a><skip> <b><c>1</c><d/> <e></e></b><f>2</f></skip><t>1</t></a>",
                  "a(skipt'1')" },
                { "nothing", "", NULL },
                { "no element", "hello", NULL },
                { "an open root", "<a>", NULL },
                { "a cut tag", "<a", NULL },
                { "a cut end", "<a></a", NULL },
                { "a cut empty tag", "<a/", NULL },
                { "another end", "<a></b>", NULL },
                { "an end that is only the beginning", "<ab></a>", NULL },
                { "crossed", "<a><b></a></b>", NULL },
                { "two roots", "<a/><b/>", NULL },
                { "text behind the root", "<a/>x", NULL },
                { "text before the root", "x<a/>", NULL },
                { "text beside children", "<a><b/>x</a>", NULL },
                { "text beside skipped children", "<a><skip><b/>x</skip></a>", NULL },
                { "children where text was wanted", "<a><t>x<b/></t></a>", NULL },
                { "a type definition", "<!DOCTYPE a [<!ENTITY e \"x\">]><a/>", NULL },
                { "a comment", "<a><!-- x --></a>", NULL },
                { "a character section", "<a><t><![CDATA[x]]></t></a>", NULL },
                { "a processing instruction", "<a><?x y?></a>", NULL },
                { "an unknown entity", "<a><t>&nbsp;</t></a>", NULL },
                { "an entity without an end", "<a><t>&lt</t></a>", NULL },
                { "an endless entity", "<a><t>&aaaaaaaaaaaaaaaaaaaa;</t></a>", NULL },
                { "an empty reference", "<a><t>&#;</t></a>", NULL },
                { "an empty hex reference", "<a><t>&#x;</t></a>", NULL },
                { "a reference to nothing", "<a><t>&#0;</t></a>", NULL },
                { "a reference to a control character", "<a><t>&#27;</t></a>", NULL },
                { "a reference to half a character", "<a><t>&#xD800;</t></a>", NULL },
                { "a reference too far", "<a><t>&#x110000;</t></a>", NULL },
                { "a control character", "<a><t>\x1b</t></a>", NULL },
                { "half a character", "<a><t>\xc3</t></a>", NULL },
                { "an attribute without a value", "<a b/>", NULL },
                { "an attribute without quotes", "<a b=c/>", NULL },
                { "attributes without a blank", "<a b='c'd='e'/>", NULL },
                { "a tag inside an attribute", "<a b='<'/>", NULL },
                { "an open attribute", "<a b='", NULL },
                { "a name that begins with a digit", "<1/>", NULL },
                { "an open declaration", "<?xml version='1.0'", NULL },
                { "a declaration that is none", "<?xmlish version='1.0'?><a/>", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf b = { 0 };
                _cleanup_free_ char *copy = memdup(rows[i].xml, strlen(rows[i].xml));
                int r;

                print_message("%s\n", rows[i].what);
                r = dump_document(copy, strlen(rows[i].xml), 10000, &b); /* a copy without a NUL */
                if (rows[i].expected) {
                        assert_return_code(r, 0);
                        assert_string_equal(strbuf_str(&b), rows[i].expected);
                } else
                        assert_int_equal(r, -EBADMSG);
        }
}

TEST_CASE(test_bounds) {
        _cleanup_strbuf_ StrBuf xml = { 0 }, b = { 0 };
        char name[XML_NAME_MAX + 2] = "";

        for (unsigned depth = XML_DEPTH_MAX; depth <= XML_DEPTH_MAX + 1; depth++) {
                strbuf_truncate(&xml, 0);
                for (unsigned i = 0; i < depth; i++)
                        strbuf_add(&xml, "<a>");
                for (unsigned i = 0; i < depth; i++)
                        strbuf_add(&xml, "</a>");
                assert_int_equal(dump_document(xml.data, xml.size, 10000, &b),
                                 depth > XML_DEPTH_MAX ? -E2BIG : 0);
        }

        assert_int_equal(dump_document("<a></a>", 7, 7, &b), 0);
        assert_int_equal(dump_document("<a></a>", 7, 6, &b), -E2BIG);
        assert_int_equal(dump_document("<a>\0</a>", 8, 100, &b), -EBADMSG);

        memset(name, 'n', XML_NAME_MAX + 1);
        strbuf_truncate(&xml, 0);
        strbuf_addf(&xml, "<%s/>", name);
        assert_int_equal(dump_document(xml.data, xml.size, 10000, &b), -EBADMSG);
        strbuf_truncate(&xml, 0);
        strbuf_addf(&xml, "<%s/>", name + 1);
        assert_int_equal(dump_document(xml.data, xml.size, 10000, &b), 0);
}

/* Whatever is cut off, the rest is refused and nothing is read past its end. */
TEST_CASE(test_every_prefix) {
        static const char xml[] =
                "<?xml version=\"1.0\"?><a x=\"y\"><b><t>1&amp;2</t></b><skip><c/>\n</skip><t/></a>";

        for (size_t n = 0; n < sizeof(xml) - 1; n++) {
                _cleanup_strbuf_ StrBuf b = { 0 };
                _cleanup_free_ char *copy = memdup(xml, n);

                assert_int_equal(dump_document(copy, n, 1000, &b), -EBADMSG);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_documents),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_every_prefix),
        };
        return cmocka_run_group_tests_name("xml-reader", tests, NULL, NULL);
}
