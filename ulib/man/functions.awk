# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kernel-doc -man HEADER | awk -f functions.awk -v to=DIR -v header=NAME -v version=V -v date=D
#
# kernel-doc writes pages of section 9 one after the other. This makes a file of each: functions are
# NAME.3, types NAME.3type; with the header and the library, a prototype as C has it, and no list
# of arguments where there are none.

function begin(name, section) {
	if (file)
		finish()
	file = to "/" name "." section
	printf ".\\\" SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\n" >file
	printf ".TH %s %s %s \"rdmatensor %s\" \"Library Functions Manual\"\n", toupper(name), section,
		date, version >file
}

function finish() {
	printf ".SH SEE ALSO\n.BR librdmatensor (3)\n" >file
	close(file)
	file = ""
}

# Lines of at most 76 columns, further ones below the first argument
function prototype(type, name, args, nr,    line, indent, i, part) {
	line = type (type ~ /\*$/ ? "" : " ") name "("
	indent = sprintf("%*s", length(line), "")
	for (i = 1; i <= nr; i++) {
		part = args[i] (i < nr ? "," : ");")
		if (i > 1 && length(line) + 1 + length(part) > 76) {
			printf ".B \"%s\"\n", line >file
			line = indent part
		} else {
			line = line (i > 1 ? " " : "") part
		}
	}
	printf ".B \"%s\"\n.fi\n", line >file
}

# Of a type's definition, one line behind
function say_member(line) {
	if (member)
		printf ".B \"%s\"\n", member >file
	member = line
}

/^\.TH / {
	kind = /^\.TH "Kernel API"/ ? "type" : "function"
	match($0, kind == "type" ? "\"(struct|enum) [a-z0-9_]+\"" : "\"[a-z0-9_]+\"")
	name = substr($0, RSTART + 1, RLENGTH - 2)
	sub(/^(struct|enum) /, "", name)
	begin(name, kind == "type" ? "3type" : "3")
	nr = skip = 0
	next
}

/^\.SH SYNOPSIS/ {
	printf ".SH LIBRARY\n.RB ( librdmatensor \", \" \\-lrdmatensor )\n.SH SYNOPSIS\n.nf\n" >file
	printf ".B #include <rdmatensor/%s>\n.PP\n", header >file
	synopsis = 1
	next
}

# What follows the prototype or the definition
synopsis && /^\.SH / {
	if (kind == "function")
		prototype(result, name, args, nr)
	else {
		say_member("")
		print ".fi" >file
	}
	synopsis = 0
}

synopsis && kind == "function" {
	if (match($0, /^\.B "[^"]*"/)) {
		result = substr($0, 5, RLENGTH - 5)
		sub(/^static inline /, "", result)
	} else if (match($0, /^\.BI "[^"]*"/)) {
		args[++nr] = substr($0, 6, RLENGTH - 6)
		sub(/^\(/, "", args[nr])
		sub(/ +$/, "", args[nr])
	}
	next
}

# Members, in lines of their own: a constant's comma comes in the next line, and no define has an end
synopsis {
	if (/^\.br/ || /^$/)
		next
	line = $0
	sub(/^\.BI "/, "", line)
	gsub(/"/, "", line)
	if (line ~ /^ *#define/)
		sub(/;$/, "", line)
	sub(/^ +#/, "#", line)
	if (line ~ /^, *$/)
		member = member ","
	else if (line !~ /^ *$/)
		say_member(line)
	next
}

/^\.SH ARGUMENTS/ && nr == 1 && args[1] == "void" {
	skip = 1
	next
}
/^\.SH / {
	skip = empty = text = 0
	gsub(/"/, "")
	title = toupper(substr($0, 5))
	if (title == "RETURN")
		title = "RETURN VALUE"
	printf ".SH %s\n", title >file
	next
}
skip { next }
# A paragraph, if more text of the same item comes
/^$/ {
	empty = text
	next
}
{
	if (empty && !/^\./)
		print ".sp" >file
	empty = 0
	text = !/^\./
	# A minus that is copied has to be one
	gsub(/-E/, "\\-E")
	gsub(/\\fBrdmatensor_[a-z0-9_]+\\fP/, "&(3)")
	sub(/^(struct|enum) rdmatensor_[a-z0-9_]+ \\-/, name " \\-")
	print >file
}
END {
	if (file)
		finish()
}
