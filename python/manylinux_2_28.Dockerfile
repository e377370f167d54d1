# A recipe, NOT RUN so far: wheels that Linux distributions from 2018 on can install (glibc 2.28), as torch's own. Where it is
# built otherwise, the wheel's tag is what the build machine's C library allows.
#   docker build -t drawpoint-wheels -f python/manylinux_2_28.Dockerfile . && docker run -v $PWD:/src drawpoint-wheels
FROM quay.io/pypa/manylinux_2_28_x86_64
RUN dnf install -y epel-release && dnf install -y 'dnf-command(config-manager)' && dnf config-manager --set-enabled powertools \
 && dnf install -y fmt-devel json-devel libjpeg-turbo-devel libwebp-devel libzstd-devel liburing-devel zlib-devel cli11-devel \
        asio-devel libspng-devel simdjson-devel git ninja-build
RUN git clone --depth 1 --branch v1.7.1 https://github.com/mapbox/protozero /tmp/protozero \
 && cp -r /tmp/protozero/include/protozero /usr/local/include/ \
 && git clone --depth 1 --branch v1.1.0 https://github.com/jupp0r/prometheus-cpp /tmp/prometheus \
 && cmake -S /tmp/prometheus -B /tmp/prometheus/build -DENABLE_PULL=OFF -DENABLE_PUSH=OFF -DENABLE_TESTING=OFF \
 && cmake --build /tmp/prometheus/build --target install
WORKDIR /src
CMD for python in cp310-cp310 cp311-cp311 cp312-cp312; do \
      /opt/python/$python/bin/pip wheel --no-deps -w raw . && auditwheel repair -w dist raw/*.whl && rm -rf raw || exit 1; \
    done
