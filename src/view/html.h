/* SPDX-License-Identifier: MIT */
/* Style and scripts of a page. The Makefile makes these strings from html.css, html.js and the file of D3. */
#ifndef VIEW_HTML_H
#define VIEW_HTML_H

extern const char html_style[], html_script[];
extern const char html_library[]; /* empty when D3 was not there at build time: then there are no plots */

#endif
