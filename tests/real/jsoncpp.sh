# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# C++ whose tests throw and catch.
package=libjsoncpp
commands=g++
build() {
    $CXX -std=c++17 -O2 -Iinclude -o jsontest src/lib_json/*.cpp src/test_lib_json/*.cpp &&
        $CXX -std=c++17 -O2 -Iinclude -o jsontestrunner src/lib_json/*.cpp src/jsontestrunner/main.cpp
}
suite() { ./jsontest && python3 test/runjsontests.py "$PWD/jsontestrunner" test/data; }
part() { ./jsontest; }
profiled() {
    python3 -c 'import json; print(json.dumps([{"name": "value %d" % i, "list": [i, i / 7, None, True]} for i in range(600)]))' >profile.json &&
        ${profile:?} ./jsontestrunner profile.json
}
functions="Json::OurReader::readObject Json::Value::CZString::.*"
data="value_[.]map_.* cstr_"
